/**
 * Generates src/postgres/schema.ts from the catalogs of a PostgreSQL with the migrations.
 * `--verify` writes nothing, but fails if the file differs. `--database=URL` uses that database
 * instead of a new one.
 */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { packageRoot } from '../src/base/package-root.ts';
import { embeddedPostgres } from '../src/postgres/embedded/embedded-postgres.ts';
import { migrate } from '../src/postgres/migrate.ts';

/** Only plain SQL uses these tables, so they need no types. */
const excludedTables = [
  'change_log',
  'changes',
  'console_links',
  'event_ids',
  'environment_uses',
  'event_prunings',
  'event_removals',
  'event_retention',
  'event_retirements',
  'iceberg_namespace_properties',
  'iceberg_tables',
  'keyed_items',
  'lake_columns',
  'lake_files',
  'lake_months',
  'lake_tables',
  'load_chunk_keys',
  'load_event_replays',
  'load_kinds',
  'load_mends',
  'load_mirrors',
  'load_missing',
  'load_rejects',
  'load_replays',
  'load_rules',
  'load_undos',
  'migrations',
  'personal_loads',
  'planned_chunks',
  'planned_events',
  'planned_rows',
  'rates',
  'received_files',
  'schedule_memory',
  'suppression_keys',
  'suppressions',
  'titled_items',
];

const folder = await mkdtemp(join(tmpdir(), 'sluice-schema-'));
const [, url] = /^--database=(.*)$/m.exec(process.argv.join('\n')) ?? [];
const server =
  url === undefined
    ? await embeddedPostgres.start({ dataDir: folder, log: pino({ level: 'warn' }) })
    : { url, stop: async () => undefined };
try {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await migrate(client);
  await client.end();
  const generated = join(folder, 'generated.ts');
  const { status } = spawnSync(
    process.execPath,
    [
      join(packageRoot, 'node_modules/kysely-codegen/dist/cli/bin.js'),
      ...['--dialect', 'postgres', '--url', server.url, '--default-schema', 'sluice'],
      ...['--include-pattern', 'sluice.*', '--exclude-pattern', `sluice.(${excludedTables.join('|')})`],
      ...['--out-file', generated],
      ...['--type-mapping', '{"int8":"number","timestamptz":"Date","bytea":"Buffer"}'],
    ],
    { stdio: 'inherit' },
  );
  if (status !== 0) throw new Error('kysely-codegen failed');
  const schema = compact(await readFile(generated, 'utf8'));
  const file = join(packageRoot, 'src/postgres/schema.ts');
  if (!process.argv.includes('--verify')) await writeFile(file, schema);
  else if ((await readFile(file, 'utf8')) !== schema)
    throw new Error('src/postgres/schema.ts is out of date');
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Removes unused types, and comments on columns, which the migrations contain. */
function compact(generated: string): string {
  const types = new Map<string, string>();
  const rest = generated
    .replace(/^export type ArrayType(?:Impl)?<T> = [^;]+;\n\n/gm, '')
    .replace(/\bArrayType<(\w+)>/g, '$1[]')
    .replace(/^ +\/\*\*\n(?: +\*.*\n)+/gm, '')
    .replace(/^export interface (?!DB\b)(\w+) (\{\n[^}]*\})\n\n/gm, (_, name: string, type: string) => {
      types.set(name, type.replace(/\n/g, '\n  '));
      return '';
    });
  return rest.replace(
    /^( {2}\w+: )(\w+);$/gm,
    (_, column: string, name: string) => `${column}${types.get(name)};`,
  );
}
