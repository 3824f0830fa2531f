// The space after its k strongest directions are removed and the others whitened by s:
//   z_j <- 0 for j <= k, z_j λ_j^(-s/2) otherwise; λ_j <- λ_j^(1-s), with z the coordinates about the mean.
const whatIf = contents.what_if && (() => {
  const { n, n_dims: d, rank, mean_residual: outside } = contents.what_if;
  const eigenvalues = doubles(contents.what_if.eigenvalues);
  const mean = doubles(contents.what_if.mean);
  const coordinates = floats(contents.what_if.coordinates);
  const zeros = new Set(contents.what_if.zeros);

  const spectrum = (k, s) => Array.from(eigenvalues.subarray(k), (value) => value ** (1 - s));

  function isoscore(values) {
    let sum = 0, squares = 0;
    for (const value of values) sum += value;
    for (const value of values) squares += (value / sum) ** 2;
    return Math.max(0, 1 / squares - 1) / (d - 1);
  }

  function effectiveRank(values) {
    let sum = 0, entropy = 0;
    for (const value of values) sum += value;
    for (const value of values) entropy -= (value / sum) * Math.log(value / sum);
    return Math.exp(entropy);
  }

  // Over all pairs of the sample: (‖Σ u‖² − n)/(n(n − 1)), u of length 1; points without a direction left out.
  function meanCosine(k, s, center) {
    const scale = Array.from(eigenvalues, (value) => value ** (-s / 2));
    const total = new Float64Array(rank + 1);
    const point = new Float64Array(rank + 1);
    let kept = 0;
    for (let i = 0; i < n; i++) {
      if (!center && zeros.has(i)) continue; // rebuilt from rounded coordinates, they are not exactly 0
      let square = 0;
      for (let j = k; j < rank; j++) {
        const value = coordinates[i * rank + j] * scale[j] + (center ? 0 : mean[j]);
        point[j] = value;
        square += value * value;
      }
      point[rank] = center ? 0 : outside;
      square += point[rank] * point[rank];
      if (!(square > 0)) continue;
      const length = Math.sqrt(square);
      for (let j = k; j <= rank; j++) total[j] += point[j] / length;
      kept += 1;
    }
    if (kept < 2) return null;
    let square = 0;
    for (let j = k; j <= rank; j++) square += total[j] * total[j];
    return (square - kept) / (kept * (kept - 1));
  }

  function at(k, s, center) {
    const values = spectrum(k, s);
    return { spectrum: values, isoscore: isoscore(values), effectiveRank: effectiveRank(values), meanCosine: meanCosine(k, s, center || k > 0 || s > 0) };
  }
  return { at, eigenvalues, rank, n, d, maxRemoved: contents.what_if.max_removed };
})();
