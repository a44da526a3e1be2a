"""Model search: many trainings with other hyper-parameters, and which of them serve best."""
