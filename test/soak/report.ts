import type { Slope } from './memory.ts';

/** A line of the table at the end. */
export interface Judged {
  readonly name: string;
  /** None: it holds. */
  readonly problems: readonly string[];
}

export interface Report {
  readonly seed: number;
  readonly queue: string;
  readonly minutes: number;
  readonly passed: boolean;
  readonly actors: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly invariants: readonly Judged[];
  readonly memory: readonly Slope[];
  /** The folder of data and logs; null: removed. */
  readonly folder: string | null;
}

export function renderReport(report: Report): string {
  const lines = [
    '',
    '| actor | |',
    '|---|---|',
    ...Object.entries(report.actors).map(([name, figures]) => `| ${name} | ${renderFigures(figures)} |`),
    '',
    `faults: ${renderFigures(report.faults) || 'none'}`,
    ...report.memory.map(
      ({ role, mibPerMinute, peakMib }) =>
        `memory of \`sluice ${role}\`: at most ${peakMib} MiB, ${mibPerMinute === null ? 'slope not known' : `${mibPerMinute.toFixed(2)} MiB a minute`}`,
    ),
    '',
    '| invariant | |',
    '|---|---|',
    ...report.invariants.map(
      ({ name, problems }) => `| ${name} | ${problems.length === 0 ? 'holds' : 'BROKEN'} |`,
    ),
    ...report.invariants.flatMap(({ name, problems }) =>
      problems.length === 0 ? [] : ['', `${name}:`, ...problems.map((problem) => `  ${problem}`)],
    ),
    '',
    `seed ${report.seed}, queue on ${report.queue}, ${report.minutes} minutes: ${report.passed ? 'passed' : 'FAILED'}`,
    ...(report.folder === null ? [] : [`data and logs are in ${report.folder}`]),
  ];
  return lines.join('\n');
}

export function renderFigures(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, number]) => `${name} ${number}`)
    .join(', ');
}
