/** `sluice jobs mend`: refused records of a load, mended and put in their place. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatCount, plural } from '../domain/wording.ts';
import { receivingStore } from '../load/accept-load.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../load/amend/accept-amendment.ts';
import { mendedRejects } from '../load/causes/mended-rejects.ts';
import { receiveLocal } from '../load/receive/receive.ts';
import { exportRejects } from '../load/rejects.ts';
import { renderLoadListItem } from '../load/render-load.ts';
import type { Parent } from '../postgres/stores/amendments.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes, UsageError } from './errors.ts';
import { followLoad } from './follow.ts';
import { flag, parseJobId, required, text } from './options.ts';
import { createProgress } from './progress.ts';
import { formatOfRejects } from './rejects-file.ts';
import { listenForStop } from './service/stop-signals.ts';
import { type EnvironmentSession, withEnvironment } from './session.ts';
import { withWorkers } from './workers.ts';

export const mend = defineCommand({
  name: 'mend',
  summary: 'correct refused records of a load',
  description:
    'Takes corrected records: from a file of `sluice jobs rejects` (--file), from an editor (--edit), or by a proposal of\n' +
    '--by-cause (--apply). They keep their place in the file: later records win.',
  argument: required('<job-id>', '', parseJobId),
  options: {
    file: text('--file <path>', 'the corrected file, or - for standard input'),
    edit: flag('--edit', 'open the refused records in $VISUAL or $EDITOR, and send what was changed'),
    apply: text('--apply <proposal>', 'a proposal that `sluice jobs rejects --by-cause` shows'),
    wins: flag('--wins', 'corrected records override everything loaded since'),
  },
  environment: true,
  json: 'print the record of the job that mends as JSON',
  examples: [
    'sluice jobs mend 0195… --edit',
    'sluice jobs mend 0195… --file mended.csv',
    'sluice jobs mend 0195… --apply 0-trim',
  ],
  run: async (invocation) => {
    const { argument: jobId, flags, terminal, json, cli } = invocation;
    const given = [flags.file, flags.apply, flags.edit || undefined].filter((way) => way !== undefined);
    if (given.length !== 1) throw new UsageError('Give one of --file, --edit and --apply.');
    const stop = listenForStop();
    await withEnvironment(invocation, async (session) => {
      const { system, environmentId, baseUrl } = session;
      const parent = await requireParent(system, environmentId, jobId);
      const send = (bytes: AsyncIterable<Uint8Array>) =>
        accept(session, parent, bytes, flags.wins, stop.signal);
      const amendment = flags.edit
        ? await edited(session, parent, cli.processEnv, send)
        : await send(sourceOf(session, jobId, flags));
      if (amendment === null) return terminal.inform('Nothing was changed, so nothing is sent.');
      const progress = createProgress(terminal, amendment, json);
      await withWorkers(session, { entry: cli.entry, stop }, async () => {
        const load = await followLoad(
          system,
          { environmentId, jobId: amendment, signal: stop.signal },
          progress,
        );
        process.exitCode = load.status === 'completed' ? exitCodes.ok : exitCodes.failed;
        const { tally } = await requireLoad(system, environmentId, jobId);
        if (json) return terminal.json(renderLoadListItem(load, baseUrl));
        terminal.print(`${mended(tally.amended)}, ${left(tally.rejected)}.`);
      });
    });
  },
});

const mended = (count: number): string =>
  count === 1 ? '1 refused record is mended' : `${plural(count, 'refused record')} are mended`;

function left(count: number): string {
  if (count === 0) return 'nothing is left';
  return count === 1 ? '1 is left' : `${formatCount(count)} are left`;
}

/** Accepts a mended file; its job. */
async function accept(
  { system, environmentId }: EnvironmentSession,
  parent: Parent,
  bytes: AsyncIterable<Uint8Array>,
  wins: boolean,
  signal: AbortSignal,
): Promise<string> {
  const options = amendmentOptions(parent);
  const hints = { source: options.source, map: options.map };
  const received = await receiveLocal(bytes, receivingStore(system), hints, system.config, signal);
  const filename = `mended ${parent.filename}`;
  const request = { environmentId, parent, filename, received, options, wins, idempotencyKey: null };
  return (await acceptAmendment(system, request)).jobId;
}

function sourceOf(
  { system, environmentId }: EnvironmentSession,
  jobId: string,
  { file, apply }: { readonly file: string | undefined; readonly apply: string | undefined },
): AsyncIterable<Uint8Array> {
  if (apply !== undefined)
    return mendedRejects(system, environmentId, jobId, apply, new AbortController().signal);
  return file === '-' || file === undefined ? process.stdin : createReadStream(file);
}

/** Has the refused records edited, in a file that nobody else can read and that is removed; null if nothing was changed. */
async function edited(
  { system, environmentId }: EnvironmentSession,
  { jobId }: Parent,
  processEnv: NodeJS.ProcessEnv,
  send: (bytes: AsyncIterable<Uint8Array>) => Promise<string>,
): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-mend-'));
  try {
    const format = await formatOfRejects(system, environmentId, jobId);
    const path = join(folder, `rejects.${format}`);
    const file = await open(path, 'wx', 0o600);
    try {
      for await (const bytes of exportRejects(system, environmentId, jobId, format))
        await file.appendFile(bytes);
    } finally {
      await file.close();
    }
    const before = await digestOf(path);
    await runEditor(processEnv['VISUAL'] || processEnv['EDITOR'] || 'vi', path);
    return (await digestOf(path)) === before ? null : await send(createReadStream(path));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path)) hash.update(bytes as Buffer);
  return hash.digest('hex');
}

/** The editor may be a command with options: a shell splits it, as other programs have it done. */
function runEditor(editor: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', `${editor} "$0"`, path], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new UsageError(`The editor (${editor}) ended with ${code}; nothing is sent.`)),
    );
  });
}
