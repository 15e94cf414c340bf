"""From graphs to a trained model: settings, minibatches, training loop, runs and their files."""
