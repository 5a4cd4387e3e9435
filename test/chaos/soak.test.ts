import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { createProfileFile, oracleOf, type ProfileFile } from '../support/files/profile-file.ts';
import { ended, expectExact, report } from '../support/oracles/exactness.ts';
import { expectEachOnce } from '../support/oracles/records-exactness.ts';
import { askForExport } from '../support/oracles/watched-exports.ts';
import { freePort } from '../support/servers/free-port.ts';
import type { SluiceProcess } from '../support/servers/processes.ts';
import { RecordSender } from '../support/servers/record-sender.ts';
import { type Api, anyQueue, callApi, oneQueue, onSite, type Site } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** Long runs have hundreds of faults. The seed determines their order. */
const faultCount = Number(process.env['SLUICE_SOAK_FAULTS'] ?? 8);
const seed = Number(process.env['SLUICE_SOAK_SEED'] ?? 7);

/** Causes a fault. Resolves when the whole service works again. */
type Fault = (service: Service) => Promise<void>;

const faults: Readonly<Record<string, Fault>> = {
  'worker killed': async ({ site, workers }) => {
    await workers.shift()?.killGroup();
    workers.push(await site.work());
  },
  'worker stopped': async ({ site, workers }) => {
    await workers.shift()?.kill('SIGTERM');
    workers.push(await site.work());
  },
  'worker paused': async ({ workers, traffic }) => {
    const [worker] = workers;
    worker?.signal('SIGSTOP');
    await traffic.untilMore();
    worker?.signal('SIGCONT');
  },
  'server killed': (service) => replaceServer(service, 'SIGKILL'),
  'server stopped': (service) => replaceServer(service, 'SIGTERM'),
  'PostgreSQL stopped as by a crash': async ({ site }) => {
    await site.postgres?.stopImmediately();
    await site.postgres?.start();
  },
  'Redis emptied': async ({ site }) => site.redis?.flush(),
  'Redis killed': async ({ site }) => {
    await site.redis?.kill();
    await site.redis?.start();
  },
};

interface Service {
  readonly site: Site;
  readonly workers: SluiceProcess[];
  readonly traffic: Traffic;
  server: Api;
  serve(): Promise<Api>;
}

async function replaceServer(service: Service, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  await service.server.process.kill(signal);
  service.server = await service.serve();
}

test.each(oneQueue(anyQueue))(
  'a service in use is exact at the end of all faults (queue on %s)',
  async (queue) => {
    await onSite({ queue, privatePostgres: true }, async (site) => {
      const port = String(await freePort());
      const serve = () => site.serve({ PORT: port });
      const [server, workers] = await Promise.all([serve(), site.workers(3)]);
      const traffic = new Traffic(callApi(server.process, server.url, site.key), site.key);
      const service: Service = { site, workers, traffic, server, serve };
      const order = faultOrder();
      for (const name of order) {
        await traffic.untilMore();
        report(`soak: ${name}`);
        await faults[name]?.(service);
      }
      await traffic.untilMore();
      const exported = await askForExport(service.server, {});
      const { jobs, files, records } = await traffic.stop();
      await exported.ended('completed');
      await exported.stop();
      const counts = await expectEachOnce(site.sql, records);
      for (const job of jobs) expect(await ended(site.sql, job)).toMatchObject({ status: 'completed' });
      for (const entity of ['users', 'companies'])
        await site.sql(`delete from sluice.${entity} where metadata ?| array['id', 'batch']`);
      const [lastJob = '', lastFile] = [jobs.at(-1), files.at(-1)];
      if (lastFile === undefined) throw new Error('no file was uploaded');
      await expectExact(site.sql, lastJob, lastFile, oracleOf(...files), { fresh: false });
      await Promise.all([...workers, service.server.process].map((process) => process.kill('SIGTERM')));
      expect(await strayFiles(site)).toEqual([]);
      report(`soak: ${order.length} faults, ${jobs.length} files, ${counts.accepted} records`);
    });
  },
);

/** Sends records of all kinds over several connections, and uploads one file after another. */
class Traffic {
  readonly #records: RecordSender;
  readonly #jobs: string[] = [];
  readonly #files: ProfileFile[] = [];
  readonly #uploading: Promise<void>;
  #isOver = false;

  constructor(api: Api, key: string) {
    this.#records = new RecordSender(api.url, key, 3);
    this.#uploading = this.#upload(api);
  }

  /** Waits until one more file and 30 more records are accepted. */
  async untilMore(): Promise<void> {
    const files = this.#jobs.length;
    await this.#records.untilAccepted(30);
    await waitFor('another file to be accepted', () => this.#jobs.length > files);
  }

  async stop() {
    this.#isOver = true;
    await this.#uploading;
    await this.#records.stop();
    this.#records.close();
    return { jobs: this.#jobs, files: this.#files, records: this.#records };
  }

  async #upload(api: Api): Promise<void> {
    while (!this.#isOver) {
      const number = this.#files.length;
      const file = createProfileFile({ rows: 4_000, seed: number });
      this.#files.push(file);
      // The service may have accepted an upload whose response was lost. The test repeats the
      // upload with the same idempotency key, so the service loads the file only once.
      this.#jobs.push(await waitFor(`file ${number} to be accepted`, () => accepted(api, file, number)));
    }
  }
}

async function accepted(api: Api, file: ProfileFile, number: number): Promise<string | null> {
  const headers = { 'content-type': 'text/csv', 'idempotency-key': `file-${number}` };
  const body = new Uint8Array(file.bytes);
  const response = await api.fetch('/v1/imports', { method: 'POST', body, headers }).catch(() => null);
  if (response === null) return null;
  const text = await response.text().catch(() => '');
  if (response.status === 200 && text !== '') return (JSON.parse(text) as { job_id: string }).job_id;
  // 409: the service still processes the first request. 503: the service is unavailable.
  expect([200, 409, 503], text).toContain(response.status);
  return null;
}

/**
 * Returns each kind of fault once, so that even a short run includes all kinds, followed by random
 * faults.
 */
function faultOrder(): string[] {
  const names = Object.keys(faults);
  let state = seed;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const deck = names
    .map((name) => ({ name, place: next(1_000) }))
    .sort((a, b) => a.place - b.place)
    .map(({ name }) => name);
  return Array.from({ length: faultCount }, (_, at) => deck[at] ?? names[next(names.length)] ?? '');
}

/** Returns stored files that the ledger lacks. */
async function strayFiles(site: Site): Promise<string[]> {
  const folder = join(site.dataDir, 'files');
  const rows = await site.sql<{ ref: string }>(
    `select file_ref as ref from sluice.loads union all select file_ref from sluice.export_files
     union all select file_ref from sluice.received_files`,
  );
  const named = new Set(rows.map(({ ref }) => ref));
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((ref) => !named.has(ref) && !ref.startsWith('tmp/'));
}
