import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { cleanUpAfter } from '../cleanups.ts';
import { patienceMs, waitFor } from '../wait-for.ts';
import { program } from './program.ts';

/** Maximum bytes of a process's output that are kept for failure messages. */
const keptOutput = 64 * 1024;

/** A `sluice` process of the program built by `npm run build`. It is killed after the test file. */
export class SluiceProcess {
  readonly name: string;
  /** Standard output and standard error, in the order in which they arrived. */
  output = '';
  /** How the process ended. `null` while it runs. */
  ending: string | null = null;
  private readonly child: ChildProcess;
  private readonly exited: Promise<unknown>;

  constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.child = child;
    const collect = (text: Buffer): void => {
      this.output = (this.output + text.toString()).slice(-keptOutput);
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    this.exited = once(child, 'exit').then(([code, signal]) => {
      this.ending = String(signal ?? `exit code ${code}`);
    });
    cleanUpAfter('file', () => this.kill('SIGKILL'));
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`${this.name} could not be started`);
    return this.child.pid;
  }

  /** Closes the pipe of standard error, as if the reader of the log had exited. */
  closeErrorOutput(): void {
    this.child.stderr?.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    if (this.ending === null) this.child.kill(signal);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.signal(signal);
    await this.exited;
  }

  /** The process group includes all forks of the process. */
  async killGroup(): Promise<void> {
    if (this.ending === null) process.kill(-this.pid, 'SIGKILL');
    await this.exited;
  }

  async prints(pattern: RegExp, timeoutMs = patienceMs): Promise<RegExpExecArray> {
    try {
      return await waitFor(`${this.name} to say ${pattern}`, () => this.find(pattern), { timeoutMs });
    } catch (error) {
      throw new Error(`${this.name} did not say ${pattern} but:\n${this.output}`, { cause: error });
    }
  }

  private find(pattern: RegExp): RegExpExecArray | null {
    const match = pattern.exec(this.output);
    if (match === null && this.ending !== null) {
      throw new Error(`${this.name} ended (${this.ending}) and had said:\n${this.output}`);
    }
    return match;
  }
}

/**
 * Starts `sluice <args>` in its own process group, with no environment variables but `variables`.
 * `stderr` is a file descriptor that receives standard error.
 */
export function startSluice(
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  { stderr = 'pipe' }: { readonly stderr?: 'pipe' | number } = {},
): SluiceProcess {
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`npm run build\` first`);
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables },
    stdio: ['ignore', 'pipe', stderr],
    detached: true,
  });
  return new SluiceProcess(`sluice ${args.join(' ')} (pid ${child.pid})`, child);
}

export function peakBytes(pid: number): number {
  const [, kilobytes = ''] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
