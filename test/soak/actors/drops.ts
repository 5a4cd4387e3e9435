import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sql } from '../site/site.ts';
import { pause, until } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';
import { createBatch, type Expected, layBatch, renderBatch } from './batch.ts';
import { ProfileSpace } from './profile-space.ts';

/** The fields that are read of a receipt. */
interface Receipt {
  readonly outcome: string;
  readonly status: string | null;
  readonly reasons: readonly unknown[];
  readonly counts: Readonly<Record<string, number>> | null;
}

const keys = 1_000;
const waitingMost = 6;
const giveUpMs = 180_000;
const receiptEnd = '.receipt.json';

/** Drops files into the inbox, one after another; they take effect in that order, and each ends up in `done`, once. */
export function createDrops(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const random = stage.random(name);
  const folder = join(stage.site.inboxDir, tenant.name);
  const space = new ProfileSpace('users', `${name}-`, tenant);
  /** Dropped, and no receipt seen yet. */
  const waiting = new Map<string, Expected>();
  const names: string[] = [];
  const problems: string[] = [];
  let done = 0;

  async function drop(): Promise<void> {
    const mark = `${name}-${names.length}`;
    const format = random.pick(['csv', 'ndjson'] as const);
    const batch = createBatch(space, format, { random, rows: random.integer(1, 2_000), keys, mark });
    const { bytes, extension } = renderBatch(batch, { gzip: random.chance(0.3) });
    const file = `${mark}.${extension}`;
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `.${file}`), bytes);
    await rename(join(folder, `.${file}`), join(folder, file));
    names.push(file);
    waiting.set(file, layBatch(batch));
  }

  async function look(): Promise<void> {
    for (const outcome of ['done', 'failed']) {
      for (const path of await filesBelow(join(folder, outcome))) {
        const file = path.slice(path.lastIndexOf('/') + 1).replace(receiptEnd, '');
        const expected = path.endsWith(receiptEnd) ? waiting.get(file) : undefined;
        if (expected === undefined) continue;
        waiting.delete(file);
        done++;
        compare(file, JSON.parse(await readFile(path, 'utf8')) as Receipt, expected);
      }
    }
  }

  function compare(file: string, { outcome, status, reasons, counts }: Receipt, expected: Expected): void {
    if (outcome !== 'done' || status !== 'completed' || counts === null) {
      problem(`dropped file ${file} is ${outcome} (${status}): ${JSON.stringify(reasons)}`);
      return;
    }
    const { read, inserted, updated = 0, unchanged = 0, superseded, rejected } = counts;
    const found = JSON.stringify({
      read,
      inserted,
      known: updated + unchanged,
      superseded,
      refused: rejected,
    });
    const wanted = JSON.stringify({ ...expected, refused: expected.refused.length });
    if (found !== wanted) problem(`dropped file ${file} came to ${found}, not ${wanted}`);
  }

  function problem(sentence: string): void {
    stage.journal.trouble(sentence);
    problems.push(sentence);
  }

  async function settle(most: number): Promise<void> {
    const settled = await until(
      async () => {
        await look();
        return waiting.size <= most ? true : null;
      },
      { timeoutMs: giveUpMs, everyMs: 300 },
    );
    if (settled === null) problem(`dropped files without a receipt: ${some([...waiting.keys()])}`);
  }

  return {
    name,
    async run() {
      while (!stage.closing.aborted) {
        await drop();
        await settle(waitingMost);
        await pause(random.integer(200, 2_500), stage.closing);
      }
      await settle(0);
    },
    figures: () => ({ dropped: names.length, done }),
    async check(sql: Sql) {
      const files = (await filesBelow(folder)).map((path) => path.slice(folder.length + 1));
      const ofDrops = files.filter((path) => names.some((file) => path.endsWith(`/${file}`)));
      const places = new Map(
        names.map((file) => [file, ofDrops.filter((path) => path.endsWith(`/${file}`)).length]),
      );
      const strays = names.flatMap((file) =>
        places.get(file) === 1 ? [] : [`${file} ${places.get(file)} times`],
      );
      return [
        ...problems,
        ...(await space.check(sql)),
        ...(strays.length > 0 ? [`dropped files not there once: ${some(strays)}`] : []),
      ];
    },
  };
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
