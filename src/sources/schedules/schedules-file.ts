import { readFile, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { ConfigError } from '../../domain/errors.ts';
import { readRequest } from '../../export/read-request.ts';
import { checkLoad } from '../../operator-file/load-options.ts';
import {
  type FileReading,
  type OperatorFile,
  type Place,
  publishedSchema,
  type RefusedFile,
  readOperatorFile,
} from '../../operator-file/read.ts';
import { type ExportDefinition, requestOf, type Schedule, schedulesSchema } from './schedules-schema.ts';
import { fillInAnything, placeholderProblem } from './source.ts';

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
  const { schedules: first, problems } = await readSchedulesNow(path);
  if (first === null) throw new ConfigError(`SCHEDULES_FILE: ${problems.join('\n')}`);
  let schedules = first;
  return {
    get schedules() {
      return schedules;
    },
    async refresh() {
      const now = await versionOf(path);
      if (now === version) return false;
      version = now;
      const read = await readSchedulesNow(path);
      if (read.schedules === null) {
        const fields = { file: path, problems: read.problems };
        log.error(fields, 'the schedules file is wrong; the schedules stay as they were');
        return false;
      }
      schedules = read.schedules;
      log.info({ file: path, schedules: schedules.length }, 'the schedules were read again');
      return true;
    },
  };
}

/** Reads the file as it is now; without a path there are none. Null: it is wrong, and `problems` has lines that say where. */
export async function readSchedulesNow(
  path: string | null,
): Promise<{ readonly schedules: readonly Schedule[] | null; readonly problems: readonly string[] }> {
  if (path === null) return { schedules: [], problems: [] };
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => error);
  if (bytes instanceof Error) {
    return { schedules: null, problems: [`${path} cannot be read (${bytes.code ?? bytes.message})`] };
  }
  const reading = readSchedulesFile(bytes);
  return { schedules: reading.value, problems: reading.value === null ? linesOf(path, reading) : [] };
}

/** `name:line:column: what is wrong`. */
function linesOf(path: string, { problems, problemCount }: RefusedFile): string[] {
  const lines = problems
    .slice(0, linesLogged)
    .map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`);
  const rest = problemCount - lines.length;
  return rest > 0 ? [...lines, `… and ${rest} more`] : lines;
}

/** Changes with the content, as far as the file system shows it. */
async function versionOf(path: string): Promise<string> {
  return stat(path, { bigint: true }).then(
    ({ size, mtimeNs, ino }) => `${ino}:${size}:${mtimeNs}`,
    () => 'gone',
  );
}

const schedulesFile: OperatorFile<typeof schedulesSchema> = {
  schema: schedulesSchema,
  emptyCure: 'without schedules it is written `schedules: []`',
  check(root) {
    const schedules = root.at(['schedules']);
    schedules.reportRepeats('name');
    for (const schedule of schedules.items) {
      checkUrl(schedule.at(['load', 'http']));
      checkLoad(schedule.at(['load']));
      const unnamed = schedule.at(['load', 'map', '']);
      if (unnamed.isThere) unnamed.reportName('is empty');
      checkExport(schedule.at(['export']));
    }
  },
};

/** Reads a schedules file, YAML or JSON, and finds everything that is wrong with it at once. */
export function readSchedulesFile(bytes: Uint8Array): FileReading<readonly Schedule[]> {
  const reading = readOperatorFile(bytes, schedulesFile);
  if (reading.value === null) return reading;
  const { schedules, timezone } = reading.value;
  return { ...reading, value: schedules.map((each) => ({ ...each, timezone: each.timezone ?? timezone })) };
}

export function schedulesFileSchema(): object {
  return publishedSchema('schedules', 'Schedules of sluice', schedulesSchema);
}

function checkUrl(source: Place): void {
  const url = source.at(['url']);
  if (typeof url.value !== 'string' || placeholderProblem(url.value) !== null) return;
  const wrong = urlProblem(fillInAnything(url.value), source.at(['allow_http']).value === true);
  if (wrong !== null) url.report(wrong);
}

function urlProblem(text: string, allowHttp: boolean): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === 'http:' && !allowHttp) return 'is unencrypted; write https://, or set allow_http';
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    return 'must be a URL that begins with https://';
  }
  if (url.username === '' && url.password === '') return null;
  return 'must not hold a user or a password; put them into headers';
}

function checkExport(exported: Place): void {
  const { value } = exported;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const body = requestOf(value as ExportDefinition);
  const range = exported.at(['range']);
  if (range.isThere && ['from', 'to', 'since'].some((name) => body[name] !== undefined)) {
    exported.report('has a range as well as from, to or since; leave one out', range.name);
  }
  if (body['include_removed'] === true && range.isThere && range.value !== 'since_last_success') {
    exported.at(['include_removed']).reportName('goes with the range since_last_success');
  }
  // The place of a problem of a request is `name`, `name[0]` or `name.member`.
  for (const { message, details } of readRequest(body).problems) {
    const keys = details.split(/[.[\]]+/).filter((key) => key !== '');
    const place = exported.at(keys.map((key) => (/^\d+$/.test(key) ? Number(key) : key)));
    place.reportName(`is wrong: ${message}`);
  }
}
