/**
 * npm run bench:capabilities [-- --rows N] [--turns N] [--seconds N]
 *
 * Measures the cost of unused capabilities. Runs the same loads and single records alternately on a
 * service with all capabilities and on a service with none. Prints the processor time of all
 * processes, and the ratio of the two services (all : none). Linux only.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';
import { apiPageAssets, bundleOptions } from '../tools/bundle-options.ts';
import { writeEventsFile } from './events-file.ts';
import { cpuSince, median, readCpu } from './figures.ts';
import { makeFolder } from './folder.ts';
import { sendRecords } from './send-records.ts';
import { apiKey, type Service, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    turns: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
  },
});
const rows = Number(flags.rows);
const turns = Number(flags.turns);
const seconds = Number(flags.seconds);

async function bundleWithout(outdir: string): Promise<string> {
  const plugin = {
    name: 'no-capabilities',
    setup({ onLoad }: Parameters<(typeof bundleOptions)['plugins'][0]['setup']>[0]) {
      onLoad({ filter: /src[\\/]registry\.ts$/ }, () => ({ contents: 'export const capabilities = [];' }));
    },
  };
  await build({
    ...bundleOptions,
    plugins: [...bundleOptions.plugins, plugin],
    entryPoints: ['cli/main', 'processes/sandbox'].map((name) => join(packageRoot, 'src', `${name}.ts`)),
    outdir,
    entryNames: '[name]',
  });
  await cp(apiPageAssets, join(outdir, 'static'), { recursive: true });
  return join(outdir, 'main.js');
}

type Figures = Readonly<Record<string, number>>;

/** Processor time of server, workers and database, in microseconds per row or record. */
async function measure(service: Service, folder: string): Promise<Figures> {
  const figures: Record<string, number> = {};
  const spend = async (what: string, work: () => Promise<number>): Promise<void> => {
    const before = readCpu(service);
    const count = await work();
    const { api, workers, postgres } = cpuSince(service, before);
    figures[what] = ((api + workers + postgres) * 1e6) / count;
  };
  const load = (path: string) => async (): Promise<number> => {
    await service.load(path, 'text/csv');
    return rows;
  };
  const users = join(folder, 'users.csv');
  const events = join(folder, 'events.csv');
  await spend('users, all new', load(users));
  await spend('users, unchanged', load(users));
  await spend('events, all new', load(events));
  for (const [kind, connections] of [
    ['track', 64],
    ['identify', 64],
    ['track', 1],
  ] as const)
    await spend(`${kind}, ${connections} connections`, async () => {
      const order = { kind, connections, seconds, warmUpSeconds: 1, url: service.address, apiKey, run: kind };
      return (await sendRecords(order)).accepted;
    });
  return figures;
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await makeFolder('sluice-bench-files-');
const bare = join(packageRoot, 'dist/bare');
try {
  const entries = { all: join(packageRoot, 'dist/bundle/main.js'), none: await bundleWithout(bare) };
  await writeUsersFile(join(folder, 'users.csv'), { rows, format: 'csv' });
  await writeEventsFile(join(folder, 'events.csv'), rows, 'csv');
  const results: Record<keyof typeof entries, Figures[]> = { all: [], none: [] };
  for (let turn = 0; turn < turns; turn++) {
    // The order alternates, because the machine is cooler during the first run of each pair.
    for (const which of turn % 2 === 0 ? (['all', 'none'] as const) : (['none', 'all'] as const)) {
      const service = await startService({}, entries[which]);
      try {
        results[which].push(await measure(service, folder));
      } finally {
        await service.stop();
      }
    }
  }
  print(`${rows} rows, ${turns} turns; µs of processor a row or record (median)\n`);
  print('| | none | all | all : none |\n|---|---:|---:|---:|');
  for (const what of Object.keys(results.all[0] ?? {})) {
    const [none, all] = [results.none, results.all].map((each) =>
      median(each.map((figures) => figures[what] ?? Number.NaN)),
    );
    print(
      `| ${what} | ${none?.toFixed(1)} | ${all?.toFixed(1)} | ${((all ?? 0) / (none ?? 1)).toFixed(3)} |`,
    );
  }
} finally {
  await rm(folder, { recursive: true, force: true });
  await rm(bare, { recursive: true, force: true });
}
