/** A line of the last hour, a few pixels high; the number beside it says what it is now. */
export function Spark({ values }: { values: readonly (number | null)[] }) {
  const most = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const step = 88 / Math.max(values.length - 1, 1);
  let path = "";
  let pen = "M";
  values.forEach((value, index) => {
    if (value === null) pen = "M";
    else {
      path += `${pen}${(2 + index * step).toFixed(1)} ${(18 - 15 * (value / most)).toFixed(1)}`;
      pen = "L";
    }
  });
  return (
    <svg class="spark" viewBox="0 0 92 20" width="92" height="20" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
