"""Methods × datasets × splits: one line of JSON for each training, and a report with intervals."""
