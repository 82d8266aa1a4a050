//! Learning rate schedule.
use serde::{Deserialize, Serialize};

/// Linear warm-up, then cosine decay to a fraction of the peak (the paper: 500 steps of warm-up, decay to zero).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Peak learning rate.
    pub peak: f64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    /// Total steps, warm-up included.
    pub steps: u64,
    /// Final learning rate as a fraction of the peak.
    pub floor: f64,
}

impl Schedule {
    /// Returns the learning rate of a step, counted from 1.
    pub fn rate(&self, step: u64) -> f64 {
        if step <= self.warm_up {
            return self.peak * step as f64 / self.warm_up as f64;
        }
        let decay_steps = self.steps.saturating_sub(self.warm_up).max(1) as f64;
        let done = ((step - self.warm_up) as f64 / decay_steps).min(1.0);
        self.peak * (self.floor + (1.0 - self.floor) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos()))
    }

    /// Returns the highest learning rate if the steps end during the warm-up, before the peak.
    pub fn below_peak(&self) -> Option<f64> {
        (self.warm_up > self.steps).then(|| self.peak * self.steps as f64 / self.warm_up as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warms_up_and_falls() {
        let schedule = Schedule { peak: 1.0, warm_up: 10, steps: 110, floor: 0.1 };
        assert_eq!(schedule.rate(1), 0.1);
        assert_eq!(schedule.rate(10), 1.0);
        assert!((schedule.rate(60) - 0.55).abs() < 1e-12, "half way between peak and floor");
        assert!((schedule.rate(110) - 0.1).abs() < 1e-12);
        assert_eq!(schedule.rate(500), schedule.rate(110));
        let rates: Vec<f64> = (10..=110).map(|step| schedule.rate(step)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]));
        assert_eq!((schedule.below_peak(), Schedule { steps: 5, ..schedule }.below_peak()), (None, Some(0.5)));
        let none = Schedule { warm_up: 0, ..schedule };
        assert!(none.rate(1) < 1.0 && none.rate(1) > 0.99);
    }
}
