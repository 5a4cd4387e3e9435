import { readFileSync } from 'node:fs';

export interface MemoryOverTime {
  readonly startMib: number;
  readonly endMib: number;
  readonly peakMib: number;
  /** Of the straight line that fits best: what would go on growing. */
  readonly mibPerMinute: string;
}

/** The heap takes its size in the first part. */
const warmUpShare = 0.2;

/** Samples the resident memory of a process each second, until what it returns is called. Linux only. */
export function watchMemory(pid: number): () => MemoryOverTime {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMib(pid)), 1_000);
  return () => {
    clearInterval(timer);
    const kept = samples.slice(Math.floor(samples.length * warmUpShare));
    return {
      startMib: Math.round(kept.at(0) ?? Number.NaN),
      endMib: Math.round(kept.at(-1) ?? Number.NaN),
      peakMib: Math.round(Math.max(...samples)),
      mibPerMinute: (slope(kept) * 60).toFixed(2),
    };
  };
}

function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

/** Least squares, per sample. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [products, squares] = [0, 0];
  for (const [at, value] of values.entries()) {
    products += (at - middle) * (value - mean);
    squares += (at - middle) ** 2;
  }
  return products / squares;
}
