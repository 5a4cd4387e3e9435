import {
  type FileReading,
  type OperatorFile,
  type Place,
  publishedSchema,
  readOperatorFile,
} from '../../base/operator-file/read.ts';
import { defineSection } from '../../cli/seam.ts';
import { checkLoad } from '../../domain/load-options.ts';
import type { ExportOptions } from '../../export/options.ts';
import { readRequest } from '../../export/read-request.ts';
import { type Confinement, confinementOf, reportUnconfined } from './confinement.ts';
import { planSchedules } from './keep.ts';
import {
  type ExportDefinition,
  type JobOptions,
  oneSchedule,
  requestOf,
  type ScheduleDefinition,
  type SchedulesFile,
  schedulesSchema,
} from './schema.ts';
import { placeholders } from './source.ts';

export const MAX_SCHEDULE_BYTES = 64 * 1024;

export function schedulesFile(
  jobOptions: JobOptions,
  confinement: Confinement,
): OperatorFile<ReturnType<typeof schedulesSchema>> {
  return {
    schema: schedulesSchema(jobOptions),
    emptyHint: 'without schedules it is written `schedules: []`',
    check(root) {
      const schedules = root.at(['schedules']);
      schedules.reportRepeats('name');
      for (const schedule of schedules.items) checkSchedule(jobOptions, schedule);
    },
    checkValue(root, { schedules }) {
      for (const [at, each] of schedules.entries()) {
        reportUnconfined(root.at(['schedules', at]), each, confinement);
      }
    },
  };
}

export function readSchedulesFile(
  jobOptions: JobOptions,
  bytes: Uint8Array,
  confinement: Confinement,
): FileReading<readonly ScheduleDefinition[]> {
  const reading = readOperatorFile(bytes, schedulesFile(jobOptions, confinement));
  if (reading.value === null) return reading;
  return { ...reading, value: definitionsOf(reading.value) };
}

export function definitionsOf({ schedules, timezone }: SchedulesFile): ScheduleDefinition[] {
  return schedules.map((each) => ({ ...each, timezone: each.timezone ?? timezone }));
}

export function readSchedule(
  jobOptions: JobOptions,
  bytes: Uint8Array,
  name: string,
  confinement: Confinement,
): FileReading<ScheduleDefinition> {
  const reading = readOperatorFile(bytes, {
    schema: oneSchedule(jobOptions),
    emptyHint: 'a schedule has cron, and load or export',
    check(root) {
      const nameInFile = root.at(['name']);
      if (nameInFile.isThere && nameInFile.value !== name)
        nameInFile.report(`must be ${name}: a schedule keeps its name`);
      checkSchedule(jobOptions, root);
    },
    checkValue: (root, value) => reportUnconfined(root, value, confinement),
  });
  const { value } = reading;
  return value === null ? reading : { ...reading, value: { timezone: 'UTC', ...value, name } };
}

export function schedulesFileSchema(jobOptions: JobOptions): object {
  return publishedSchema('schedules', 'Schedules of sluice', schedulesSchema(jobOptions));
}

function checkSchedule(jobOptions: JobOptions, schedule: Place): void {
  if (Buffer.byteLength(JSON.stringify(schedule.value)) > MAX_SCHEDULE_BYTES) {
    schedule.report(`has more than ${MAX_SCHEDULE_BYTES} bytes`);
  }
  checkUrl(schedule.at(['load', 'http']));
  checkLoad(jobOptions.optionTable, schedule.at(['load']));
  const unnamed = schedule.at(['load', 'map', '']);
  if (unnamed.isThere) unnamed.reportName('is empty');
  checkExport(jobOptions.exportOptions, schedule.at(['export']));
}

function checkUrl(source: Place): void {
  const url = source.at(['url']);
  if (typeof url.value !== 'string' || placeholders.problemOf(url.value) !== null) return;
  const wrong = urlProblem(placeholders.fillInAnything(url.value), source.at(['allow_http']).value === true);
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

function checkExport(options: ExportOptions, exported: Place): void {
  const { value } = exported;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const body = requestOf(options, value as ExportDefinition);
  const range = exported.at(['range']);
  if (range.isThere && ['from', 'to', 'since'].some((name) => body[name] !== undefined)) {
    exported.report('has a range as well as from, to or since; leave one out', range.name);
  }
  if (body['include_removed'] === true && range.isThere && range.value !== 'since_last_success') {
    exported.at(['include_removed']).reportName('goes with the range since_last_success');
  }
  // `details` is a place such as `name`, `name[0]` or `name.member`.
  for (const { message, details } of readRequest(options, body).problems) {
    const keys = details.split(/[.[\]]+/).filter((key) => key !== '');
    const place = exported.at(keys.map((key) => (/^\d+$/.test(key) ? Number(key) : key)));
    place.reportName(`is wrong: ${message}`);
  }
}

export const schedulesSection = defineSection<ReturnType<typeof schedulesSchema>>({
  name: 'schedules',
  open: async ({ config, environment, cli }) => ({
    file: schedulesFile(cli, await confinementOf(config, environment)),
    plan: (db, environmentId, declared, options) =>
      planSchedules(db, environmentId, definitionsOf(declared), options),
  }),
});
