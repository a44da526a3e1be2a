"""Feature extractors and preprocessors of video and text."""
