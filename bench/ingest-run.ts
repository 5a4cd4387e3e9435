import type pg from 'pg';
import { type Baseline, observe, type Target } from './ingest-servers.ts';
import type { Posted } from './post-records.ts';
import { batchItems, countStored, type RecordKind } from './records.ts';
import { sendRecords } from './send-records.ts';
import { apiKey, type Service } from './service.ts';

export type Server = 'sluice' | Baseline;

export interface Run {
  readonly kind: RecordKind;
  readonly server: Server;
  readonly connections: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Measured extends Posted {
  /** Rows in the table at the end of this run. */
  readonly stored: number;
  /** Average number of records that share a statement. '' if unknown. */
  readonly perWindow: string;
  readonly cpuMicrosPerRecord: number;
  readonly postgresMicrosPerRecord: number;
  readonly peakMib: number;
}

/** Throws unless the table contains all accepted records. */
export async function measure(
  client: pg.Client,
  service: Service,
  target: Target,
  run: Run,
): Promise<Measured> {
  // Each run starts with a table of the same size and without dirty pages.
  if (run.kind !== 'identify') await client.query('truncate sluice.events');
  await client.query('checkpoint');
  const name = `${run.server}-${run.connections}-${Date.now()}`;
  const windows = await countWindows(target, run.kind === 'batch' ? 'track' : run.kind);
  const stopObserving = observe(target, service);
  const posted = await sendRecords({ ...run, url: target.url, apiKey, run: name });
  const { peakMib, cpuMs, postgresMs } = stopObserving();
  const perRecord = 1_000 / posted.accepted / itemsOf(run.kind);
  const perWindow = await windows();
  const stored = await countStored(client, run.kind, name);
  checkStored(run, posted, stored);
  return {
    ...posted,
    stored,
    perWindow,
    cpuMicrosPerRecord: Math.round(cpuMs * perRecord),
    postgresMicrosPerRecord: Math.round(postgresMs * perRecord),
    peakMib,
  };
}

function checkStored({ server, kind }: Run, posted: Posted, stored: number): void {
  const { accepted, sent, failed, failures, wrapped } = posted;
  if (failed > 0) throw new Error(`${failed} requests were refused: ${JSON.stringify(failures)}`);
  // A user that was sent twice is one row, so the rows cannot be checked.
  if (kind === 'identify' && wrapped) return;
  const items = itemsOf(kind);
  const least = server === 'bare' ? 0 : accepted * items;
  const most = server === 'bare' ? 0 : sent * items;
  if (stored < least || stored > most) throw new Error(`${stored} rows are stored, not ${least} to ${most}`);
}

export function itemsOf(kind: RecordKind): number {
  return kind === 'batch' ? batchItems : 1;
}

/**
 * Counts windows until the returned function is called. This function returns the average number of
 * records in a window, or '' if there was no window.
 */
async function countWindows(target: Target, kind: RecordKind): Promise<() => Promise<string>> {
  const before = await readWindows(target, kind);
  return async () => {
    const after = await readWindows(target, kind);
    const windows = after.windows - before.windows;
    return windows > 0 ? ((after.records - before.records) / windows).toFixed(1) : '';
  };
}

interface Windows {
  readonly records: number;
  readonly windows: number;
}

async function readWindows({ url }: Target, kind: RecordKind): Promise<Windows> {
  const response = await fetch(new URL('/metrics', url));
  const text = response.ok ? await response.text() : '';
  const entity = kind === 'track' ? 'events' : 'users';
  const value = (suffix: string): number =>
    Number(
      new RegExp(`^sluice_commit_window_records_${suffix}{[^}]*"${entity}"[^}]*} (\\S+)$`, 'm').exec(
        text,
      )?.[1] ?? 0,
    );
  return { records: value('sum'), windows: value('count') };
}
