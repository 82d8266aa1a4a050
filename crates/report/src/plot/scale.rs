//! Scales from values to coordinates.

/// A map from an interval of values to an interval of coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// Creates a linear scale; `from` is the coordinate of `low`. An empty or undefined domain is widened to one unit.
    pub fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        Scale { low, high, from, to, log: false }
    }

    /// Creates a logarithmic scale; bounds that are not positive are replaced (1 below, a decade above).
    pub fn log((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1.0 };
        let high = if high.is_finite() && high > low { high } else { low * 10.0 };
        Scale { low, high, from, to, log: true }
    }

    /// Returns the coordinate of a value, clamped to the domain.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// True if the value is within the domain.
    pub fn contains(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    pub fn domain(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns about `count` round values as ticks; on a logarithmic scale decades, with 2 and 5 if there is room.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        if self.log { self.log_ticks(count) } else { self.linear_ticks(count) }
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(rough);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        // Multiplied, not added up, and rounded where the step has a short decimal form.
        let place = |index: i64| {
            let value = index as f64 * step;
            let digits = 10f64.powi((3 - power.log10() as i32).clamp(0, 12));
            (value * digits).round() / digits
        };
        (first..=last.min(first + 100)).map(place).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let marks = |factors: &[f64]| -> Vec<f64> {
            let every = decades.clone().flat_map(|e| factors.iter().map(move |factor| factor * 10f64.powi(e)));
            every.filter(|value| *value >= self.low * 0.999_999 && *value <= self.high * 1.000_001).collect()
        };
        [&[1.0, 2.0, 5.0][..], &[1.0, 3.0][..], &[1.0][..]]
            .into_iter()
            .map(marks)
            .find(|ticks| ticks.len() <= count.max(2) + 2)
            .unwrap_or_else(|| marks(&[1.0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_places_and_ticks() {
        let scale = Scale::linear((0.0, 1.0), (100.0, 0.0));
        assert_eq!([0.0, 0.25, 1.0, 7.0, -3.0, f64::NAN].map(|v| scale.at(v)), [100.0, 75.0, 0.0, 0.0, 100.0, 100.0]);
        assert_eq!(scale.ticks(5), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(Scale::linear((1.0, 100.0), (0.0, 1.0)).ticks(5), [20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::linear((-0.3, 0.3), (0.0, 1.0)).ticks(6), [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]);
    }

    #[test]
    fn log_places_and_ticks() {
        let scale = Scale::log((0.1, 10.0), (0.0, 200.0));
        assert!((scale.at(1.0) - 100.0).abs() < 1e-9);
        assert_eq!(scale.at(0.0), 0.0);
        assert_eq!(scale.ticks(4).len(), 5);
        assert_eq!(Scale::log((0.001, 1000.0), (0.0, 1.0)).ticks(5).len(), 7);
    }

    #[test]
    fn domains_without_extent_are_widened() {
        for scale in [
            Scale::linear((5.0, 5.0), (0.0, 1.0)),
            Scale::linear((f64::NAN, f64::NAN), (0.0, 1.0)),
            Scale::linear((0.0, f64::INFINITY), (0.0, 1.0)),
            Scale::log((0.0, 0.0), (0.0, 1.0)),
            Scale::log((-1.0, f64::NAN), (0.0, 1.0)),
        ] {
            assert!(scale.at(3.0).is_finite() && !scale.ticks(5).is_empty(), "{scale:?}");
        }
    }
}
