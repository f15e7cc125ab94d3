"""What the program reports about itself: log lines, metrics, and notifications of systemd."""
