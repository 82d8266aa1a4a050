//! Perceptron on one-hot inputs with hand-written gradients: each input group selects a row of the first matrix, hidden layers
//! are rectified, and each output group is a softmax.
use candle_core::Device;

use crate::TrainError;
use crate::parameters::normal;

/// Examples computed together, one per lane.
const LANES: usize = 16;

/// Partial sums of a weight's gradient, added up once per batch.
const PARTIAL: usize = 4;

type Lanes = [f32; LANES];

/// Dimensions of a perceptron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// Inputs, of which an example has a few that are 1.
    pub(super) inputs: usize,
    /// Inputs that are 1 in an example.
    pub(super) active: usize,
    /// Units of each hidden layer.
    pub(super) width: usize,
    /// Number of hidden layers.
    pub(super) hidden_layers: usize,
    /// Classes of each output group.
    pub(super) outputs: Vec<usize>,
}

impl Shape {
    /// Returns the number of parameters, biases included.
    pub(super) fn parameters(&self) -> usize {
        let Layer { start, inputs, outputs } = self.layer(self.hidden_layers);
        start + inputs * outputs + outputs
    }

    /// Returns a layer: the first is 0, the output layer is `hidden_layers`.
    fn layer(&self, index: usize) -> Layer {
        let classes: usize = self.outputs.iter().sum();
        let (mut start, mut inputs) = (0, self.inputs);
        for _ in 0..index {
            start += inputs * self.width + self.width;
            inputs = self.width;
        }
        Layer { start, inputs, outputs: if index == self.hidden_layers { classes } else { self.width } }
    }
}

/// Range of a layer in the flat parameters: its matrix `[inputs, outputs]`, then its biases `[outputs]`.
#[derive(Debug, Clone, Copy)]
struct Layer {
    start: usize,
    inputs: usize,
    outputs: usize,
}

impl Layer {
    fn matrix(self, parameters: &[f32]) -> &[f32] {
        &parameters[self.start..][..self.inputs * self.outputs]
    }

    fn biases(self, parameters: &[f32]) -> &[f32] {
        &parameters[self.start + self.inputs * self.outputs..][..self.outputs]
    }

    /// Matrix and biases.
    fn split(self, parameters: &mut [f32]) -> (&mut [f32], &mut [f32]) {
        let size = self.inputs * self.outputs;
        parameters[self.start..][..size + self.outputs].split_at_mut(size)
    }
}

/// Fact to memorise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    /// Inputs that are 1.
    pub(super) rows: Vec<usize>,
    /// Correct class of each output group.
    pub(super) classes: Vec<usize>,
}

/// Recall of a set of facts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Recall {
    /// Facts of which the most probable class of every output group is correct.
    pub(super) right: usize,
    /// Sum of the cross-entropies, in nats.
    pub(super) nats: f64,
}

/// Perceptron with the buffers of its computations.
pub(super) struct Network {
    shape: Shape,
    layers: Vec<Layer>,
    /// All parameters, layer by layer.
    pub(super) parameters: Vec<f32>,
    /// Gradient of the last batch's mean loss.
    pub(super) gradient: Vec<f32>,
    /// Outputs of the hidden layers for one block of examples.
    hidden: Vec<Vec<Lanes>>,
    /// Gradients with respect to them.
    hidden_gradient: Vec<Vec<Lanes>>,
    /// Logits, then probabilities, then their gradients.
    outputs: Vec<Lanes>,
    /// Partial sums of the matrices' gradients; empty for the first layer, whose rows are added directly.
    partial: Vec<Vec<[f32; PARTIAL]>>,
}

impl Network {
    /// Creates a network with He-initialised weights (K. He et al., 2015) and biases of zero; they depend on the seed alone.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub(super) fn new(shape: Shape, seed: u64) -> Result<Self, TrainError> {
        let layers: Vec<Layer> = (0..=shape.hidden_layers).map(|index| shape.layer(index)).collect();
        let mut parameters = vec![0.0; shape.parameters()];
        for (index, layer) in layers.iter().enumerate() {
            // Inputs of the first layer that are not zero; the output layer is not rectified.
            let inputs = if index == 0 { shape.active } else { layer.inputs };
            let gain = if index == shape.hidden_layers { 1.0 } else { 2.0 };
            let std = (gain / inputs as f64).sqrt();
            let drawn =
                normal(seed, &format!("perceptron {index}"), &[layer.inputs * layer.outputs], std, &Device::Cpu)?;
            layer.split(&mut parameters).0.copy_from_slice(&drawn.to_vec1::<f32>()?);
        }
        let block = || vec![vec![[0.0; LANES]; shape.width]; shape.hidden_layers];
        Ok(Network {
            gradient: vec![0.0; parameters.len()],
            hidden: block(),
            hidden_gradient: block(),
            outputs: vec![[0.0; LANES]; shape.outputs.iter().sum()],
            partial: layers
                .iter()
                .enumerate()
                .map(|(index, layer)| {
                    let size = if index == 0 { 0 } else { layer.inputs * layer.outputs };
                    vec![[0.0; PARTIAL]; size]
                })
                .collect(),
            parameters,
            layers,
            shape,
        })
    }

    /// Returns the classes of each output group.
    pub(super) fn classes(&self) -> &[usize] {
        &self.shape.outputs
    }

    /// Counts the facts that are recalled and sums their cross-entropy.
    pub(super) fn recall<'a>(&mut self, facts: impl IntoIterator<Item = &'a Fact>) -> Recall {
        let mut recall = Recall { right: 0, nats: 0.0 };
        let facts: Vec<&Fact> = facts.into_iter().collect();
        for block in facts.chunks(LANES) {
            self.forward(block);
            for (lane, fact) in block.iter().enumerate() {
                let mut all = true;
                let mut first = 0;
                for (&classes, &class) in self.shape.outputs.iter().zip(&fact.classes) {
                    let logits = &self.outputs[first..first + classes];
                    let own = logits[class][lane];
                    // A class that is as probable as another one is not recalled.
                    all &= logits.iter().enumerate().all(|(other, logit)| other == class || logit[lane] < own);
                    // Relative to the highest, so that no exponential overflows.
                    let highest = logits.iter().fold(own, |highest, logit| highest.max(logit[lane]));
                    let above = |logit: f32| f64::from(logit) - f64::from(highest);
                    let sum: f64 = logits.iter().map(|logit| libm::exp(above(logit[lane]))).sum();
                    recall.nats += libm::log(sum) - above(own);
                    first += classes;
                }
                recall.right += usize::from(all);
            }
        }
        recall
    }

    /// Computes the gradient of the mean cross-entropy of a batch.
    pub(super) fn differentiate(&mut self, batch: &[&Fact]) {
        self.gradient.fill(0.0);
        for partial in &mut self.partial {
            partial.fill([0.0; PARTIAL]);
        }
        let weight = 1.0 / batch.len() as f32;
        for block in batch.chunks(LANES) {
            self.forward(block);
            self.output_gradient(block, weight);
            self.backward(block);
        }
        for (layer, partial) in self.layers.iter().zip(&self.partial).skip(1) {
            let (matrix, _) = layer.split(&mut self.gradient);
            for (sum, [a, b, c, d]) in matrix.iter_mut().zip(partial) {
                *sum = (a + b) + (c + d);
            }
        }
    }

    /// Computes the hidden outputs and the logits of up to [`LANES`] facts.
    fn forward(&mut self, block: &[&Fact]) {
        let layer = self.layers[0];
        let (matrix, biases) = (layer.matrix(&self.parameters), layer.biases(&self.parameters));
        let first = &mut self.hidden[0];
        for (output, bias) in first.iter_mut().zip(biases) {
            *output = [*bias; LANES];
        }
        for (lane, fact) in block.iter().enumerate() {
            for &row in &fact.rows {
                let weights = &matrix[row * layer.outputs..][..layer.outputs];
                for (output, weight) in first.iter_mut().zip(weights) {
                    output[lane] += weight;
                }
            }
        }
        for output in first.iter_mut() {
            rectify(output);
        }
        for (index, layer) in self.layers.iter().enumerate().skip(1) {
            let (matrix, biases) = (layer.matrix(&self.parameters), layer.biases(&self.parameters));
            if index == self.shape.hidden_layers {
                dense(matrix, biases, &self.hidden[index - 1], &mut self.outputs);
            } else {
                let (before, after) = self.hidden.split_at_mut(index);
                dense(matrix, biases, &before[index - 1], &mut after[0]);
                after[0].iter_mut().for_each(rectify);
            }
        }
    }

    /// Replaces the logits by the gradients of the weighted cross-entropies; lanes without a fact get zero.
    fn output_gradient(&mut self, block: &[&Fact], weight: f32) {
        let mut first = 0;
        for (group, &classes) in self.shape.outputs.iter().enumerate() {
            let logits = &mut self.outputs[first..first + classes];
            let mut highest = [f32::NEG_INFINITY; LANES];
            for logit in logits.iter() {
                for (highest, logit) in highest.iter_mut().zip(logit) {
                    *highest = highest.max(*logit);
                }
            }
            let mut sums = [0.0; LANES];
            for logit in logits.iter_mut() {
                for ((logit, highest), sum) in logit.iter_mut().zip(&highest).zip(&mut sums) {
                    *logit = exp(*logit - highest);
                    *sum += *logit;
                }
            }
            let mut scales = [0.0; LANES];
            for (scale, sum) in scales.iter_mut().zip(&sums).take(block.len()) {
                *scale = weight / sum;
            }
            for logit in logits.iter_mut() {
                for (logit, scale) in logit.iter_mut().zip(&scales) {
                    *logit *= scale;
                }
            }
            for (lane, fact) in block.iter().enumerate() {
                logits[fact.classes[group]][lane] -= weight;
            }
            first += classes;
        }
    }

    /// Adds a block's gradients to `gradient` (biases, first layer) and `partial` (other matrices).
    fn backward(&mut self, block: &[&Fact]) {
        for index in (1..=self.shape.hidden_layers).rev() {
            let layer = self.layers[index];
            let (before, after) = self.hidden_gradient.split_at_mut(index);
            let outer = after.first().unwrap_or(&self.outputs);
            let (_, biases) = layer.split(&mut self.gradient);
            for (bias, gradient) in biases.iter_mut().zip(outer) {
                *bias += gradient.iter().sum::<f32>();
            }
            let inner = &self.hidden[index - 1];
            let matrix = layer.matrix(&self.parameters);
            for (j, (input, gradient)) in inner.iter().zip(&mut before[index - 1]).enumerate() {
                let row = j * layer.outputs..(j + 1) * layer.outputs;
                // A local array stays in registers.
                let mut sum = [0.0; LANES];
                for (weight, outer) in matrix[row.clone()].iter().zip(outer) {
                    for (sum, outer) in sum.iter_mut().zip(outer) {
                        *sum += weight * outer;
                    }
                }
                for (sum, input) in sum.iter_mut().zip(input) {
                    *sum = if *input > 0.0 { *sum } else { 0.0 };
                }
                *gradient = sum;
                for (sums, outer) in self.partial[index][row].iter_mut().zip(outer) {
                    let ([a, b, c, d], [e, f, g, h]) = (quarters(input), quarters(outer));
                    for (part, sum) in sums.iter_mut().enumerate() {
                        *sum += (a[part] * e[part] + b[part] * f[part]) + (c[part] * g[part] + d[part] * h[part]);
                    }
                }
            }
        }
        let layer = self.layers[0];
        let (matrix, biases) = layer.split(&mut self.gradient);
        for (bias, gradient) in biases.iter_mut().zip(&self.hidden_gradient[0]) {
            *bias += gradient.iter().sum::<f32>();
        }
        for (lane, fact) in block.iter().enumerate() {
            for &row in &fact.rows {
                let sums = &mut matrix[row * layer.outputs..][..layer.outputs];
                for (sum, gradient) in sums.iter_mut().zip(&self.hidden_gradient[0]) {
                    *sum += gradient[lane];
                }
            }
        }
    }
}

/// Computes the exponential of a number of at most 0, to two units in the last place; below -87, that of -87. Unlike the library's it has no
/// branches, so that the compiler computes several lanes at once, and it is the same on all machines.
fn exp(x: f32) -> f32 {
    /// 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, of which the first has few digits (Cephes).
    let rest = (x - whole * 0.693_359_4) - whole * -2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        sum = sum * rest + coefficient;
    }
    let power = sum * (rest * rest) + rest + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    power * f32::from_bits(exponent << 23)
}

fn quarters(lanes: &Lanes) -> &[[f32; PARTIAL]; 4] {
    lanes.as_chunks().0.try_into().expect("16 lanes are 4 times 4")
}

fn rectify(lanes: &mut Lanes) {
    for value in lanes {
        *value = value.max(0.0);
    }
}

/// Computes `outputs = biases + inputs * matrix`, two outputs at a time so that an input is loaded once for both.
fn dense(matrix: &[f32], biases: &[f32], inputs: &[Lanes], outputs: &mut [Lanes]) {
    let width = outputs.len();
    for (pair, outputs) in outputs.chunks_mut(2).enumerate() {
        let k = 2 * pair;
        let mut one = [biases[k]; LANES];
        if let [first, second] = outputs {
            let mut two = [biases[k + 1]; LANES];
            for (input, weights) in inputs.iter().zip(matrix.chunks_exact(width)) {
                let (a, b) = (weights[k], weights[k + 1]);
                for ((one, two), input) in one.iter_mut().zip(&mut two).zip(input) {
                    *one += a * input;
                    *two += b * input;
                }
            }
            (*first, *second) = (one, two);
        } else {
            for (input, weights) in inputs.iter().zip(matrix.chunks_exact(width)) {
                for (one, input) in one.iter_mut().zip(input) {
                    *one += weights[k] * input;
                }
            }
            outputs[0] = one;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(hidden_layers: usize) -> (Network, Vec<Fact>) {
        let shape = Shape { inputs: 12, active: 2, width: 5, hidden_layers, outputs: vec![3, 4] };
        let fact = |n: usize| Fact { rows: vec![n % 6, 6 + n / 6], classes: vec![n * 7 % 3, n * 5 % 4] };
        // More facts than lanes, and a last block that is not full.
        (Network::new(shape, 3).unwrap(), (0..36).map(fact).collect())
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        for hidden_layers in [1, 2, 3] {
            let (mut network, facts) = small(hidden_layers);
            let batch: Vec<&Fact> = facts.iter().collect();
            network.differentiate(&batch);
            let gradient = network.gradient.clone();
            let mut compared = 0;
            for (at, &gradient) in gradient.iter().enumerate() {
                let own = network.parameters[at];
                let mut loss = |value: f32| {
                    network.parameters[at] = value;
                    network.recall(&facts).nats / facts.len() as f64
                };
                let step = 1e-3;
                let (low, middle, high) = (loss(own - step), loss(own), loss(own + step));
                loss(own);
                // Where a unit switches in between, the loss is not differentiable: the difference quotient is wrong by up to the second
                // difference divided by two steps.
                if ((high - middle) - (middle - low)).abs() > 2e-6 {
                    continue;
                }
                let expected = (high - low) / f64::from(2.0 * step);
                assert!((expected - f64::from(gradient)).abs() < 2e-3, "{at}: {expected} {gradient}");
                compared += usize::from(expected.abs() > 1e-3);
            }
            assert!(compared > network.parameters.len() / 3, "only {compared} gradients were compared");
        }
    }

    #[test]
    fn exponentials_are_those_of_the_library() {
        for step in 0..=870_000 {
            let x = -1e-4 * step as f32;
            let (found, expected) = (exp(x), libm::exp(f64::from(x)));
            assert!((f64::from(found) / expected - 1.0).abs() < 2.5e-7, "{x}: {found} {expected}");
        }
        assert_eq!((exp(0.0), exp(-1000.0)), (1.0, exp(-87.0)));
    }

    #[test]
    fn parameters_are_counted() {
        let shape = |width, hidden_layers, inputs, active, outputs: &[usize]| {
            Shape { inputs, active, width, hidden_layers, outputs: outputs.to_vec() }.parameters()
        };
        // 30 * 8 + 8, 8 * 8 + 8, 8 * 10 + 10.
        assert_eq!(shape(8, 2, 30, 3, &[10]), 410);
        // 18 * 6 + 6, 6 * 19 + 19.
        assert_eq!(shape(6, 1, 18, 2, &[9, 10]), 247);
        assert_eq!(small(2).0.parameters.len(), small(2).0.shape.parameters());
    }

    #[test]
    fn a_confident_error_has_a_finite_cross_entropy() {
        let (mut network, facts) = small(1);
        network.parameters.iter_mut().for_each(|parameter| *parameter *= 1000.0);
        let recall = network.recall(&facts);
        assert!(recall.right < 36 && recall.nats.is_finite() && recall.nats > 36_000.0, "{recall:?}");
    }

    #[test]
    fn equal_logits_are_not_recalled() {
        let (mut network, facts) = small(1);
        network.parameters.fill(0.0);
        let recall = network.recall(&facts);
        assert_eq!(recall.right, 0);
        assert!((recall.nats / 36.0 - (3f64.ln() + 4f64.ln())).abs() < 1e-6);
    }
}
