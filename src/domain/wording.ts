/** Numbers as a person reads them. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const count = new Intl.NumberFormat('en-US');

/** 1,234,567 */
export function formatCount(value: number): string {
  return count.format(value);
}

/** 1 file, 2,345 files */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** 12.3 MiB */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** 0.4 s, 12 s, 3 min 20 s, 2 h 5 min */
export function formatDuration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
