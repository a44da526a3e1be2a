"""How complex a learned function is: norms, margins, sharpness, clusters, augmentation."""
