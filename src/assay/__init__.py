"""assay."""
from assay.subject import Subject
