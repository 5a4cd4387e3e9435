import { once } from 'node:events';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { Random } from '../random.ts';
import type { Sql, Tenant } from '../site/site.ts';
import { some } from './actor.ts';
import { type Batch, createBatch, layBatch, renderBatch } from './batch.ts';
import type { ProfileSpace } from './profile-space.ts';

/** A load that a run made, or met: then somebody had loaded those bytes before. */
interface Taken {
  readonly item: string;
  readonly version: string;
  readonly job_id: string;
  readonly is_new: boolean;
  readonly rows_read: number;
  readonly rows_inserted: number;
  readonly rows_known: number;
  readonly rows_superseded: number;
  readonly rows_rejected: number;
}

/**
 * Lays what runs of the schedule have loaded over the space, in the order of the loads, and compares: no version twice,
 * each with the tally that it must have, and nothing left that stood there when the last run that went well began.
 */
export async function checkScheduledLoads(
  sql: Sql,
  tenant: Tenant,
  schedule: string,
  versions: Versions,
  space: ProfileSpace,
): Promise<string[]> {
  const problems: string[] = [];
  const loaded = new Map<string, string>();
  const jobs: string[] = [];
  for (const taken of await readTaken(sql, tenant, schedule)) {
    const { item, version, job_id } = taken;
    const name = `${item} ${version}`;
    const batch = versions.find(item, version);
    const before = loaded.get(name);
    if (batch === undefined) problems.push(`load ${job_id} is of ${name}, which was never there`);
    else if (!taken.is_new && before !== job_id) problems.push(`load ${job_id} of ${name} is nobody's`);
    else if (taken.is_new && before !== undefined) problems.push(`${name} was loaded twice: ${job_id}`);
    if (batch === undefined || !taken.is_new) continue;
    loaded.set(name, job_id);
    jobs.push(job_id);
    const { refused, ...expected } = layBatch(batch);
    const wanted = JSON.stringify({ ...expected, refused: refused.length });
    const found = JSON.stringify({
      read: taken.rows_read,
      inserted: taken.rows_inserted,
      known: taken.rows_known,
      superseded: taken.rows_superseded,
      refused: taken.rows_rejected,
    });
    if (found !== wanted) problems.push(`load ${job_id} of ${name} came to ${found}, not ${wanted}`);
  }
  const strays = await readStrays(sql, tenant, space.prefix, jobs);
  if (strays.length > 0) problems.push(`loads that no run knows of: ${some(strays)}`);
  const missed = versions
    .standingSince(await readLastGood(sql, tenant, schedule))
    .filter((name) => !loaded.has(name));
  if (missed.length > 0) problems.push(`there when ${schedule} ran, and not loaded: ${some(missed)}`);
  return [...problems, ...(await space.check(sql))];
}

/** In the order in which they took effect; of one load what made it first. */
function readTaken(sql: Sql, { environmentId }: Tenant, schedule: string): Promise<Taken[]> {
  return sql<Taken>(
    `select item, version, job_id, is_new, rows_read, rows_inserted, rows_updated + rows_unchanged as rows_known,
       rows_superseded, rows_rejected
     from sluice.schedule_runs r
     join sluice.schedule_run_items using (run_id)
     join sluice.loads using (job_id)
     where r.environment_id = $1 and r.schedule_name = $2
     order by lane_position, is_new desc, run_id`,
    [environmentId, schedule],
  );
}

/** Jobs of loads of such files, other than these. */
async function readStrays(
  sql: Sql,
  { environmentId }: Tenant,
  prefix: string,
  known: readonly string[],
): Promise<readonly string[]> {
  const rows = await sql<{ job_id: string }>(
    `select job_id from sluice.loads
     where environment_id = $1 and starts_with(filename, $2) and not job_id = any($3::uuid[])`,
    [environmentId, prefix, known],
  );
  return rows.map(({ job_id }) => job_id);
}

/** When the last run that went well began; 0: none did. */
async function readLastGood(sql: Sql, { environmentId }: Tenant, schedule: string): Promise<number> {
  const [row] = await sql<{ at: Date | null }>(
    `select max(started_at) as at from sluice.schedule_runs
     where environment_id = $1 and schedule_name = $2
       and status in ('completed', 'completed_with_rejects', 'unchanged')`,
    [environmentId, schedule],
  );
  return row?.at?.getTime() ?? 0;
}

/** Something that a schedule loads from, and that changes. */
export interface ScheduledSource {
  readonly versions: Versions;
  change(): Promise<void>;
}

const fileKeys = 1_000;
const fileRows = 1_500;
const pageKeys = 500;
const pageRows = 1_000;
/** So many that some stand there from one run to the next. */
const filesMost = 12;

/** A folder to which files are added, and in which they are overwritten. */
export function createScheduledFiles(folder: string, space: ProfileSpace, random: Random): ScheduledSource {
  const versions = new Versions();
  const paths: string[] = [];

  function pickPath(): string {
    if (paths.length > 0 && (paths.length >= filesMost || random.chance(0.5))) return random.pick(paths);
    const path = join(folder, `${space.prefix}${paths.length}.${random.pick(['csv', 'ndjson'])}`);
    paths.push(path);
    return path;
  }

  return {
    versions,
    async change() {
      const path = pickPath();
      const batch = createBatch(space, path.endsWith('.csv') ? 'csv' : 'ndjson', {
        random,
        rows: random.integer(1, fileRows),
        keys: fileKeys,
        mark: `${space.prefix}${versions.size}`,
      });
      const unfinished = join(dirname(folder), 'unfinished');
      await mkdir(folder, { recursive: true });
      await writeFile(unfinished, renderBatch(batch, { gzip: false }).bytes);
      const { size, mtimeNs } = await stat(unfinished, { bigint: true });
      versions.add(path, `${size}:${mtimeNs}`, batch);
      await rename(unfinished, path);
      versions.stands(path);
    },
  };
}

export interface ScheduledPage extends ScheduledSource {
  readonly url: string;
}

/** A page of a web server of this machine, with an ETag. It is always there. */
export async function openScheduledPage(space: ProfileSpace, random: Random): Promise<ScheduledPage> {
  const versions = new Versions();
  let page = { etag: '', bytes: Buffer.alloc(0) };
  const server = createServer((request, response) => {
    const { etag, bytes } = page;
    const isKnown = request.headers['if-none-match'] === etag;
    response.writeHead(isKnown ? 304 : 200, { etag, 'content-type': 'application/x-ndjson' });
    response.end(isKnown ? undefined : bytes);
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${space.prefix}page.ndjson`;
  return {
    url,
    versions,
    async change() {
      const mark = `${space.prefix}${versions.size}`;
      const batch = createBatch(space, 'ndjson', {
        random,
        rows: random.integer(1, pageRows),
        keys: pageKeys,
        mark,
      });
      const etag = `"${mark}"`;
      versions.add(url, JSON.stringify({ etag, lastModified: null }), batch);
      page = { etag, bytes: renderBatch(batch, { gzip: false }).bytes };
      versions.stands(url);
    },
  };
}

/** Every content that an item of a source, such as a file, has ever had, by the names that the ledger has for them. */
export class Versions {
  readonly #batches = new Map<string, Batch>();
  readonly #latest = new Map<string, { readonly version: string; readonly since: number }>();

  /** Call it before the content can be seen. */
  add(item: string, version: string, batch: Batch): void {
    this.#batches.set(`${item} ${version}`, batch);
    this.#latest.set(item, { version, since: Number.POSITIVE_INFINITY });
  }

  /** Call it when it can. */
  stands(item: string): void {
    const latest = this.#latest.get(item);
    if (latest !== undefined) this.#latest.set(item, { ...latest, since: Date.now() });
  }

  get size(): number {
    return this.#batches.size;
  }

  find(item: string, version: string): Batch | undefined {
    return this.#batches.get(`${item} ${version}`);
  }

  /** What has been there since before the moment, in ms since 1970, as `item version`. */
  standingSince(moment: number): readonly string[] {
    return [...this.#latest].flatMap(([item, { version, since }]) =>
      since < moment ? [`${item} ${version}`] : [],
    );
  }
}
