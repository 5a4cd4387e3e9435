import { readFile, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { ConfigError } from '../domain/errors.ts';
import type { RefusedFile } from '../operator-file/read.ts';
import { readSchedulesFile } from './read-schedules-file.ts';
import type { Schedule } from './schedule.ts';

/** The schedules in force: those that the file had when it was last right. */
export interface SchedulesFile {
  readonly schedules: readonly Schedule[];
  /** Reads the file again if it was written to; one that is wrong is logged and changes nothing. True: they are others now. */
  refresh(): Promise<boolean>;
}

const linesLogged = 20;

/** @throws ConfigError if the file is not there or is wrong; the message has the line of each problem. */
export async function openSchedulesFile(path: string, log: Logger): Promise<SchedulesFile> {
  let version = await versionOf(path);
  let schedules = await readAtStart(path);
  return {
    get schedules() {
      return schedules;
    },
    async refresh() {
      const now = await versionOf(path);
      if (now === version) return false;
      version = now;
      const reading = await readFile(path).then(readSchedulesFile, (error: Error) => error);
      if (reading instanceof Error) {
        log.error({ file: path }, 'the schedules file cannot be read; the schedules stay as they were');
        return false;
      }
      if (reading.value === null) {
        const problems = linesOf(path, reading);
        log.error({ file: path, problems }, 'the schedules file is wrong; the schedules stay as they were');
        return false;
      }
      schedules = reading.value;
      log.info({ file: path, schedules: schedules.length }, 'the schedules were read again');
      return true;
    },
  };
}

async function readAtStart(path: string): Promise<readonly Schedule[]> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`SCHEDULES_FILE: ${path} cannot be read (${error.code ?? error.message})`);
  });
  const reading = readSchedulesFile(bytes);
  if (reading.value !== null) return reading.value;
  const lines = linesOf(path, reading).join('\n');
  throw new ConfigError(`SCHEDULES_FILE: ${path} is wrong\n${lines}`);
}

/** `name:line:column: what is wrong`. */
function linesOf(path: string, { problems, problemCount }: RefusedFile): string[] {
  const lines = problems
    .slice(0, linesLogged)
    .map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`);
  const rest = problemCount - lines.length;
  return rest > 0 ? [...lines, `… and ${rest} more`] : lines;
}

/** Changes with the content, as far as the file system tells. */
async function versionOf(path: string): Promise<string> {
  return stat(path, { bigint: true }).then(
    ({ size, mtimeNs, ino }) => `${ino}:${size}:${mtimeNs}`,
    () => 'gone',
  );
}
