"""Parts that systems are made of: extractors, preprocessors, learners, classifiers."""
