import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { program } from '../support/servers/program.ts';

/** Paths of the standard input and of both outputs of a command. */
interface Streams {
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

interface Command extends Streams {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * An object with `unref`, which stops the object from keeping this process alive. A pipe to a child
 * process has this method, but its type does not declare it.
 */
interface Unreferable {
  unref(): void;
}

let socket: Promise<string> | undefined;

/** Returns the socket of this process's command host. The host ends with this process. */
export function commandSocket(): Promise<string> {
  socket ??= startHost();
  return socket;
}

async function startHost(): Promise<string> {
  const path = join(tmpdir(), `sluice-${randomUUID()}`);
  // The host has no IPC channel. With one, the program would assume that another sluice process has
  // started it.
  const host = spawn(process.execPath, [join(import.meta.dirname, 'command-host.js'), program, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(host.stdout, 'data');
  for (const each of [host, host.stdin, host.stdout]) (each as unknown as Unreferable).unref();
  return path;
}

/** Runs a command of `sluice` in the command host. Returns its exit code. */
export async function runInHost({ stdin, stdout, stderr, cwd, words, env }: Command): Promise<number> {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const fields = [stdin, stdout, stderr, cwd, String(words.length), ...words, ...variables];
  const call = request({ socketPath: await commandSocket(), method: 'POST' });
  call.end(fields.map((field) => `${field}\0`).join(''));
  const [response] = await once(call, 'response');
  return Number(await text(response));
}
