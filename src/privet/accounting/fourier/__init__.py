"""The Fourier accountant: lattice laws that bracket a step, composed by fast Fourier transforms."""
