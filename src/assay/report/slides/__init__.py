"""Reports as slides, in files of PowerPoint."""
