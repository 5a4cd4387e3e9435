import type { Target } from './ingest-servers.ts';
import type { RecordKind } from './records.ts';

/** Begins to count; what it returns says how many records shared a statement on average, or nothing if none did. */
export async function countWindows(target: Target, kind: RecordKind): Promise<() => Promise<string>> {
  const before = await read(target, kind);
  return async () => {
    const after = await read(target, kind);
    const windows = after.windows - before.windows;
    return windows > 0 ? ((after.records - before.records) / windows).toFixed(1) : '';
  };
}

interface Windows {
  readonly records: number;
  readonly windows: number;
}

async function read({ url }: Target, kind: RecordKind): Promise<Windows> {
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
