/**
 * Reads documentation pages as shell sessions. A code block is a file if the line above it ends
 * with a file name and a colon. Commands are in `sh` blocks. The expected response of a call is
 * either a status in a comment below the call, or the next block. In that block, … matches any
 * text. Commands that start a service are not run.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { program } from '../support/servers/program.ts';
import { temporaryFolder } from './cli.ts';
import { commandSocket } from './command-host.ts';

const root = resolve(import.meta.dirname, '../..');

export interface Page {
  readonly name: string;
  readonly files: ReadonlyMap<string, string>;
  readonly commands: readonly Command[];
  /** Settings with which the page starts its service. */
  readonly settings: Readonly<Record<string, string>>;
}

interface Command {
  readonly text: string;
  /**
   * HTTP statuses that the page lists for the response. Empty if the command is not an API call.
   */
  readonly statuses: readonly string[];
  /** Parts of the expected response, split at each …. */
  readonly answer: readonly string[];
  readonly printed: readonly string[];
}

/**
 * Pages that abbreviate the responses in their examples. For these pages, only the statuses of the
 * responses are compared.
 */
const guides: ReadonlySet<string> = new Set(['docs/loads.md', 'docs/exports.md']);

const looksAtJob = /(background_jobs|exports\/jobs)\/|sluice jobs/;

const starts =
  /^((?:[A-Z_]+=\S+ )*)(?:npx sluice (?:start|demo|serve|work)|npm start|npm ci && npm run demo)(?:\s+#.*)?$/;

export async function readPage(name: string): Promise<Page> {
  const text = await readFile(join(root, name), 'utf8');
  const compared = guides.has(name) ? [] : undefined;
  const all = [...text.matchAll(/^```sh\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?/gms)].flatMap(
    ([, block = '', printed]) => readBlock(block, printed),
  );
  const started = all.flatMap((command) => starts.exec(command.text)?.[1]?.trim().split(' ') ?? []);
  return {
    name,
    files: new Map(
      [...text.matchAll(/`([\w./-]*\.\w+)`[^`]*:\n\n^```(?!sh\n)\w*\n(.*?)^```$/gms)].map(
        ([, file = '', content = '']) => [file, content],
      ),
    ),
    commands: all
      .filter((command) => !starts.test(command.text))
      .map((command) => ({ ...command, answer: compared ?? command.answer })),
    settings: Object.fromEntries(
      started.filter((each) => each !== '').map((each) => each.split('=') as [string, string]),
    ),
  };
}

/**
 * Combines the pages of the API reference into one page. A call is correct if it returns any status
 * that its chapter lists. The call may also return 403 or 404, because the service may lack the
 * job, the segment or the session of the example.
 */
export async function readReference(names: readonly string[]): Promise<Page> {
  const overview = await readPage('docs/api.md');
  const texts = await Promise.all(names.map((name) => readFile(join(root, name), 'utf8')));
  const commands = texts.flatMap((text) =>
    text.split(/^## /m).flatMap((chapter) => {
      const [, command] = /^```sh\n(.*)\n```$/m.exec(chapter) ?? [];
      if (command === undefined) return [];
      const answers = Array.from(chapter.matchAll(/^\*\*(\d{3})\*\*/gm), ([, status = '']) => status);
      return [{ text: command, statuses: [...answers, '403', '404'], answer: [], printed: [] }];
    }),
  );
  return { ...overview, commands: [...overview.commands, ...commands] };
}

function readBlock(block: string, printed = ''): Command[] {
  const lines = block
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line !== '');
  const commands = lines.flatMap((text, at) => {
    if (text.startsWith('#')) return [];
    const next = lines.findIndex((line, index) => index > at && !line.startsWith('#'));
    const comment = lines
      .slice(at + 1, next < 0 ? lines.length : next)
      .map((line) => line.replace(/^# ?/, ''));
    const [, status, answer = ''] = /^(\d{3})\b(.*)$/s.exec(comment.join('\n')) ?? [];
    return [{ text, statuses: status === undefined ? [] : [status], answer: piecesOf(answer), printed: [] }];
  });
  const last = commands.pop();
  const shown = printed.split('\n').filter((line) => line !== '' && line !== '…');
  return last === undefined ? [] : [...commands, { ...last, printed: shown }];
}

/** Removes white space, and replaces job ids and times with …, because they differ in each run. */
const piecesOf = (answer: string) =>
  answer
    .replaceAll(/\s/g, '')
    .split(/…|\d{4}-\d\d-\d\dT[\d:.]+Z|01[0-9a-f]{6}-[0-9a-f]{4}[0-9a-f-]*/)
    .filter((piece) => piece !== '');

/**
 * Creates a folder for pages, with the samples, an `npx` that runs the built program, and a `curl`
 * that also prints the status.
 */
export async function shellFolder(): Promise<string> {
  const folder = await temporaryFolder();
  // Copies the samples, because the commands of the pages write to them.
  for (const name of ['docs/samples', 'examples/presets']) {
    await cp(join(root, name), join(folder, name), { recursive: true });
  }
  await mkdir(join(folder, 'bin'));
  const npx = join(folder, 'bin', 'npx');
  await writeFile(npx, `#!/bin/sh\nshift\n${await callHost()}\n`);
  await chmod(npx, 0o755);
  await writeFile(
    join(folder, '.curlrc'),
    'silent\nmax-time = 30\nwrite-out = "%{stderr}\\nHTTP %{http_code}\\n"\n',
  );
  return folder;
}

/**
 * Returns a script that runs `sluice "$@"`. On a system with /proc, the script lets the command
 * host run the command. `sluice psql` runs in its own process, because psql would use the streams
 * of the host.
 */
async function callHost(): Promise<string> {
  const itself = `exec "${process.execPath}" "${program}" "$@"`;
  if (!existsSync('/proc/self/fd')) return itself;
  return `[ "$1" = psql ] && ${itself}
code=$({
  printf '%s\\0' /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 "$PWD" $# "$@"
  env -0
} | curl -q -s --unix-socket "${await commandSocket()}" --data-binary @- http://host/)
exit $code`;
}

export async function writeFiles(page: Page, folder: string, fill = (text: string) => text): Promise<void> {
  for (const [name, content] of page.files) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), fill(content));
  }
}

/**
 * A person who follows a page, with a folder, a service, its API key, and environment variables.
 */
export interface Reader {
  readonly folder: string;
  readonly url: string;
  readonly key: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Follows a page to its end, or until a command fails. Returns the commands whose results differ
 * from the page.
 */
export async function followPage(page: Page, { folder, url, key, env }: Reader): Promise<string[]> {
  // The placeholders that a page contains, each with the value that replaces it.
  const filled = [
    ['slk_…', key],
    ['http://127.0.0.1:8080', url],
  ] as const;
  const fill = (text: string) => filled.reduce((now, [shown, real]) => now.replaceAll(shown, real), text);
  await writeFiles(page, folder, fill);
  // A person looks at a job some time after it started. The script is faster, so it waits until all
  // jobs have ended.
  const pause = `for status in queued processing; do until curl -s -H "Authorization: Token ${key}" "${url}/v1/background_jobs?limit=1&status=$status" 2>/dev/null | grep -q '^\\[\\]'; do sleep 0.2; done; done`;
  const log = join(folder, `${page.name.replaceAll('/', '-')}.log`);
  const script = [
    // Without this line, the standard streams would be sockets, which the command host cannot open.
    `exec </dev/null >>"${log}" 2>&1`,
    ...page.commands.map(({ text }, at) =>
      [...(looksAtJob.test(text) ? [pause] : []), `echo "=== ${at}"`, fill(text)].join('\n'),
    ),
  ];
  const ran = promisify(execFile)('bash', ['-e', '-c', script.join('\n')], {
    cwd: folder,
    env: {
      ...env,
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      CURL_HOME: folder,
      PORT: new URL(url).port,
    },
  });
  const ending = await ran.then(
    () => '',
    () => '\nThe shell ended here.',
  );
  const output = (await readFile(log, 'utf8')) + ending;
  const sections = output.split(/^=== \d+\n/m).slice(1);
  return page.commands.flatMap((command, at) => {
    const section = sections[at] ?? 'It was not reached.';
    return isAsShown(command, section) ? [] : [`${page.name}: ${command.text}\n→ ${section}`];
  });
}

function isAsShown({ statuses, answer, printed }: Command, section: string): boolean {
  if (section.includes('The shell ended here.') || section === 'It was not reached.') return false;
  const status = [...section.matchAll(/^HTTP (\d{3})$/gm)].at(-1)?.[1];
  if (statuses.length > 0 && !statuses.includes(status ?? '')) return false;
  if (!holdsInOrder(section.replaceAll(/\s/g, ''), answer)) return false;
  const lines = section.split('\n').map(even);
  let at = 0;
  return printed.every((line) => {
    const shape = new RegExp(`^${even(line).split('…').map(escaped).join('.*')}$`);
    const position = lines.findIndex((each, index) => index >= at && shape.test(each));
    at = position + 1;
    return position >= 0;
  });
}

function holdsInOrder(text: string, pieces: readonly string[]): boolean {
  let at = 0;
  return pieces.every((piece) => {
    const position = text.indexOf(piece, at);
    at = position + piece.length;
    return position >= 0;
  });
}

/** Removes column widths, because they depend on the other rows of a table. */
const even = (line: string) => line.replaceAll(/─+/g, '─').replaceAll(/ +/g, ' ').trim();

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
