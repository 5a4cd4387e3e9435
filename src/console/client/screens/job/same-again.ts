/* The same job once more, as `curl`, on the command line, as a schedule: written from the parameters in the ledger. */

import type { JobHistory } from '../../../../api/job.ts';
import { publicUrl } from '../../lib/address.ts';
import { timeZone } from '../../lib/format.ts';
import { isLoad } from '../../lib/jobs.ts';
import type { JobDetail } from '../../lib/records.ts';
import {
  authorization,
  command,
  type Form,
  inEnvironment,
  scheduleHead,
  shellWord,
} from '../../lib/repeat.ts';
import { type Body, commandOf, curlOf, scheduleOf } from '../export/export-wish.ts';

type Parameters = JobHistory['parameters'];
type Option = readonly [name: string, value: string | number | boolean];

/** Returns the forms that the job can be written in. */
export function sameAgain(
  job: JobDetail,
  { parameters, parameters_cut: isCut }: JobHistory,
): readonly Form[] {
  const forms = formsOf(job, parameters);
  if (!isCut) return forms;
  const warning = 'Incomplete: long lists in the parameters are cut.';
  return forms.map((form) => ({ ...form, hint: warning }));
}

function formsOf(job: JobDetail, parameters: Parameters): readonly Form[] {
  if (job.type === 'export') return exportForms(parameters);
  if (!isLoad(job)) return deletionForms(job, parameters);
  if (parameters['amends'] != null) return mendingForms(job, parameters, String(parameters['amends']));
  if (parameters['file_of'] != null) return storedForms(parameters, String(parameters['file_of']));
  return loadForms(job, parameters);
}

function loadForms(job: JobDetail, parameters: Parameters): readonly Form[] {
  const options = loadOptions(parameters);
  const map = mapOf(parameters);
  const isBulk = job.type !== 'import';
  const path = isBulk ? `/v1/${job.type.replace('bulk_identify_', '')}/bulk_identify` : '/v1/imports';
  const file = shellWord(job.filename);
  const curl = [`curl ${authorization}`, ...fieldsOf(options, map), fileField(job.filename), publicUrl(path)];
  const flags = [
    ...Object.entries(map ?? {}).map(([theirs, ours]) => `--map ${shellWord(`${theirs}=${ours}`)}`),
    ...options.map(([option, value]) =>
      value === true ? flagOf(option) : `${flagOf(option)} ${shellWord(String(value))}`,
    ),
    ...inEnvironment(),
  ];
  return [
    { name: 'curl', text: command(curl) },
    { name: 'Command line', text: command([`sluice import ${file}`, ...flags]) },
    {
      name: 'Schedule',
      text: loadSchedule(job, options, map),
      hint: 'Fill in when it is due, and where its files come from: docs/schedules.md.',
    },
  ];
}

/** Writes the load of a file that another job has stored: nothing is sent. */
function storedForms(parameters: Parameters, from: string): readonly Form[] {
  const fields = fieldsOf(loadOptions(parameters), mapOf(parameters));
  const take = `curl -X POST ${authorization} ${publicUrl(`/v1/background_jobs/${from}/upload`)}`;
  const load = [`curl ${authorization}`, '-F "upload_id=$UPLOAD"', ...fields, publicUrl('/v1/imports')];
  return [
    {
      name: 'curl',
      text: `UPLOAD=$(${take} | grep -o '"upload_id":"[^"]*"' | cut -d'"' -f4)\n${command(load)}`,
      hint: 'It takes the file that another job has stored.',
    },
  ];
}

function mendingForms(job: JobDetail, { wins }: Parameters, mends: string): readonly Form[] {
  const file = shellWord(job.filename);
  const curl = [
    `curl ${authorization}`,
    ...(wins === true ? ['-F wins=true'] : []),
    fileField(job.filename),
    publicUrl(`/v1/background_jobs/${mends}/amend`),
  ];
  const mend = [
    `sluice jobs mend ${mends} --file ${file}`,
    ...(wins === true ? ['--wins'] : []),
    ...inEnvironment(),
  ];
  const hint = 'The file has the mended records; each refused record is mended once.';
  return [
    { name: 'curl', text: command(curl), hint },
    { name: 'Command line', text: mend.join(' '), hint },
  ];
}

/** Puts a name that curl would read as more than a name into quotes of curl's own. */
function fileField(filename: string): string {
  const isPlain = /^[\w.-]+$/.test(filename);
  return `-F ${shellWord(`file=@${isPlain ? filename : `"${filename.replace(/[\\"]/g, '\\$&')}"`}`)}`;
}

function fieldsOf(
  options: readonly Option[],
  map: Readonly<Record<string, string>> | null,
): readonly string[] {
  return [
    ...(map === null ? [] : [`--form-string ${shellWord(`map=${JSON.stringify(map)}`)}`]),
    ...options.map(([option, value]) => `--form-string ${shellWord(`${option}=${value}`)}`),
  ];
}

/** Writes values as JSON, which YAML is a superset of; an option that is given several times becomes a list. */
function loadSchedule(
  job: JobDetail,
  options: readonly Option[],
  map: Readonly<Record<string, string>> | null,
): string {
  const lists = new Map<string, Option[1][]>();
  for (const [option, value] of options) {
    if (option !== 'dry_run' && option !== 'plan') lists.set(option, [...(lists.get(option) ?? []), value]);
  }
  return [
    ...scheduleHead('same-again'),
    '    load:',
    `      files: { pattern: ${JSON.stringify(`/data/${job.filename}`)} }`,
    ...[...lists].map(
      ([option, values]) => `      ${option}: ${JSON.stringify(values.length > 1 ? values : values[0])}`,
    ),
    ...(map === null ? [] : [`      map: ${JSON.stringify(map)}`]),
  ].join('\n');
}

function mapOf({ map }: Parameters): Readonly<Record<string, string>> | null {
  const given = (map ?? {}) as Readonly<Record<string, string>>;
  return Object.keys(given).length === 0 ? null : given;
}

/** Returns the options by the names that the API, the flags and a schedule have for them. */
function loadOptions(parameters: Parameters): readonly Option[] {
  const { entity, preset, format, options } = parameters;
  const { max_errors, max_changed, max_removed_values, dry_run, plan } = parameters;
  const found: Option[] = [];
  const add = (option: string, value: unknown): void => {
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== null && each !== undefined && each !== false) found.push([option, each as Option[1]]);
  };
  if (entity === 'users' || entity === 'companies') add('entity', entity);
  add('preset', preset);
  if (preset == null) add('format', format);
  const others = { max_errors, max_changed, max_removed_values, dry_run, plan, ...(options ?? {}) };
  for (const [option, value] of Object.entries(others)) add(option, value);
  return found;
}

function flagOf(option: string): string {
  return `--${option.replaceAll('_', '-')}`;
}

function exportForms({ request, emails }: Parameters): readonly Form[] {
  const given = (request ?? {}) as Body;
  const body: Body = Array.isArray(emails) && emails.length > 0 ? { ...given, emails } : given;
  return [
    { name: 'curl', text: curlOf(body, publicUrl('/api/v1/analytics/exports')) },
    { name: 'Command line', text: command([commandOf(body), ...inEnvironment()]) },
    {
      name: 'Schedule',
      text: scheduleOf(body, timeZone),
      hint: 'Fill in when it is due, and its range: docs/schedules.md.',
    },
  ];
}

function deletionForms(job: JobDetail, { purge_exports: purges }: Parameters): readonly Form[] {
  const what = job.type === 'delete_users' ? 'users' : 'companies';
  const body = { [what]: ['…'], ...(purges === true ? { purge_exports: true } : {}) };
  const path = `/v1/background_jobs/${job.job_id}/outcomes`;
  const hint = `The ids are not kept with the job; GET ${path} has them. Schedules delete nothing.`;
  const flags = [...(purges === true ? ['--purge-exports'] : []), '--yes', ...inEnvironment()];
  const curl = curlOf(body, publicUrl(`/v1/${what}`), 'DELETE');
  return [
    { name: 'curl', text: curl, hint },
    { name: 'Command line', text: `sluice delete ${what} --file ids.txt ${flags.join(' ')}`, hint },
  ];
}
