"""How complex a learned function is: norms, distances, margins, sharpness, bounds, clusters, augmentation, speed."""
