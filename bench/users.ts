import { join } from 'node:path';
import type pg from 'pg';
import { type Baseline, openBaseline, openReadyRows, type ReadyRows } from './baseline.ts';
import { least, median } from './figures.ts';
import { peaks, resetPeaks, type Service } from './service.ts';
import { writeUsersFile } from './users-file.ts';

interface Step {
  readonly key: string;
  readonly title: string;
  readonly format: 'csv' | 'ndjson';
  /** Share of changed rows. `null` if all rows are new. */
  readonly changed: number | null;
}

/** The first step fills all tables. Later, changed rows get values that they never had. */
const steps: readonly Step[] = [
  { key: 'new', title: 'CSV, all new', format: 'csv', changed: null },
  { key: 'unchanged', title: 'CSV, all again, unchanged', format: 'csv', changed: 0 },
  { key: '1%', title: 'CSV, 1 % changed', format: 'csv', changed: 0.01 },
  { key: '10%', title: 'CSV, 10 % changed', format: 'csv', changed: 0.1 },
  { key: '50%', title: 'CSV, half changed', format: 'csv', changed: 0.5 },
  { key: 'ndjson', title: 'NDJSON, all new', format: 'ndjson', changed: null },
];

export const stepKeys: readonly string[] = steps.map(({ key }) => key);

interface Way {
  readonly key: string;
  readonly title: string;
  readonly table: string;
  takes(step: Step): boolean;
  empty(): Promise<void>;
  /** Returns the elapsed seconds. */
  run(path: string, step: Step): Promise<number>;
}

export const wayKeys = ['copy', 'hand'] as const;
const ours = 'sluice';
const ourTables = 'sluice.users, sluice.companies';

export interface UsersComparison {
  readonly rows: number;
  readonly turns: number;
  /** Keys of the steps to run. The first step always runs. */
  readonly only: readonly string[];
  /** Keys of the ways to load the users without sluice, for comparison. */
  readonly against: readonly string[];
}

class Measured {
  readonly #seconds = new Map<string, number[]>();
  readonly peaks = new Map<string, Map<string, number>>();

  add(step: Step, way: string, seconds: number): void {
    this.#seconds.set(`${step.key} ${way}`, [...this.of(step, way), seconds]);
  }

  of(step: Step, way: string): readonly number[] {
    return this.#seconds.get(`${step.key} ${way}`) ?? [];
  }

  addPeaks(step: Step, mibByProcess: Readonly<Record<string, number>>): void {
    const stepPeaks = this.peaks.get(step.key) ?? new Map<string, number>();
    for (const [name, mib] of Object.entries(mibByProcess))
      stepPeaks.set(name, Math.max(mib, stepPeaks.get(name) ?? 0));
    this.peaks.set(step.key, stepPeaks);
  }
}

/**
 * Alternately loads the same users through the service and in other ways into one PostgreSQL.
 * Prints the times, and the ratios of sluice within a turn: below 1, sluice is faster.
 */
export async function compareUsers(
  service: Service,
  client: pg.Client,
  folder: string,
  { rows, turns, only, against }: UsersComparison,
  print: (line: string) => unknown,
): Promise<void> {
  const selection = steps.filter(({ key }) => key === 'new' || only.includes(key));
  const file = (step: Step): string => join(folder, `users-${step.key}.${step.format}`);
  for (const [version, step] of selection.entries()) {
    const { format, changed } = step;
    await writeUsersFile(file(step), { rows, format, changed: changed ?? 0, version });
  }
  const baseline = await openBaseline(service.databaseUrl);
  const readyRows = await openReadyRows(service.databaseUrl);
  const measured = new Measured();
  try {
    const ready = join(folder, 'users.copy');
    await service.load(file(selection[0] as Step), 'text/csv');
    await readyRows.save(ready);
    const others = [copyWay(client, readyRows, ready), ...handWays(baseline)].filter(({ key }) =>
      against.includes(key),
    );
    const ways = [...others, ourWay(service, client, measured)];
    for (let turn = 0; turn < turns; turn++) {
      for (const step of selection) {
        for (const way of turn % 2 === 0 ? ways : lastFirst(ways)) {
          if (!way.takes(step)) continue;
          await prepare(client, way, step);
          measured.add(step, way.title, await way.run(file(step), step));
        }
      }
    }
    printFigures(selection, ways, measured, rows, print);
  } finally {
    await baseline.close();
    await readyRows.close();
  }
}

/**
 * Reverses the order of the ways. Only the ways that write to sluice's tables keep their order, in
 * which COPY runs before sluice.
 */
function lastFirst(ways: readonly Way[]): readonly Way[] {
  const sharing = ways.filter(({ table }) => table === ourTables);
  return [...ways.filter(({ table }) => table !== ourTables).reverse(), ...sharing];
}

/** Dirty pages and dead rows of earlier steps would slow down the next step. */
async function prepare(client: pg.Client, way: Way, step: Step): Promise<void> {
  if (step.changed === null) await way.empty();
  else await client.query(`vacuum (analyze) ${way.table}`);
  await client.query('checkpoint');
}

function ourWay(service: Service, client: pg.Client, measured: Measured): Way {
  return {
    key: ours,
    title: ours,
    table: ourTables,
    takes: () => true,
    async empty() {
      await client.query(`truncate ${ourTables}`);
    },
    async run(path, step) {
      resetPeaks(service.pid);
      const { seconds } = await service.load(
        path,
        step.format === 'csv' ? 'text/csv' : 'application/x-ndjson',
      );
      measured.addPeaks(step, peaks(service.pid));
      return seconds;
    },
  };
}

function copyWay(client: pg.Client, readyRows: ReadyRows, path: string): Way {
  return {
    key: 'copy',
    title: 'COPY of ready rows, two connections',
    table: ourTables,
    takes: (step) => step.changed === null,
    async empty() {
      await client.query(`truncate ${ourTables}`);
    },
    run: () => readyRows.copy(path),
  };
}

/** `is distinct from` has no effect if all rows are new. */
function handWays(baseline: Baseline): Way[] {
  const key = 'hand';
  const title = 'by hand, one connection';
  const plain = { key, title, table: baseline.table, empty: () => baseline.clear() };
  return [
    {
      ...plain,
      title: `${title}, is distinct from`,
      takes: (step) => step.changed !== null,
      run: (path, step) => baseline.load(path, step.format, { onlyChanged: true }),
    },
    {
      ...plain,
      takes: (step) => step.changed === null || step.changed === 0,
      run: (path, step) => baseline.load(path, step.format),
    },
  ];
}

function printFigures(
  selection: readonly Step[],
  ways: readonly Way[],
  measured: Measured,
  rows: number,
  print: (line: string) => unknown,
): void {
  print('| load | way | seconds, least / median | rows/s | sluice ÷ this, least / median | peak RSS, MiB |');
  print('|---|---|---|---|---|---|');
  const [first] = selection as [Step];
  for (const step of selection) {
    const ourSeconds = measured.of(step, ours);
    const memory = [...(measured.peaks.get(step.key) ?? [])].map(([name, mib]) => `${name} ${mib}`);
    print(
      `| ${step.title} | sluice | ${both(ourSeconds)} | ${Math.round(rows / median(ourSeconds))} | | ${memory.join(', ')} |`,
    );
    const compare = (title: string, seconds: readonly number[]): void => {
      const ratios = ourSeconds.map((value, turn) => value / (seconds[turn] ?? Number.NaN));
      print(`| | ${title} | ${both(seconds)} | ${Math.round(rows / median(seconds))} | ${both(ratios)} | |`);
    };
    for (const way of ways) {
      if (way.key !== ours && way.takes(step)) compare(way.title, measured.of(step, way.title));
    }
    if (step !== first) compare(`sluice, ${first.title}`, measured.of(first, ours));
  }
}

function both(values: readonly number[]): string {
  return `${least(values).toFixed(2)} / ${median(values).toFixed(2)}`;
}
