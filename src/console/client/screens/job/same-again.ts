/* The same job once more: as `curl`, on the command line, as a schedule. Written from what the ledger says it was told to do. */
import type { JobDetail, JobHistory } from '../../lib/job-record.ts';
import { isLoad } from '../../lib/job-record.ts';
import { publicUrl } from '../../lib/place.ts';
import { type Form, shellWord } from '../../ui/copy.tsx';

const header = '-H "Authorization: Token $SLUICE_KEY"';

type Option = readonly [name: string, value: string];

/** The forms that the job can be written in. */
export function sameAgain(job: JobDetail, { parameters }: JobHistory): readonly Form[] {
  if (job.type === 'export') return exportForms(parameters);
  return isLoad(job) ? loadForms(job, parameters) : deletionForms(job, parameters);
}

function loadForms(job: JobDetail, parameters: JobHistory['parameters']): readonly Form[] {
  const options = loadOptions(parameters);
  const given = (parameters['map'] ?? {}) as Readonly<Record<string, string>>;
  const map = Object.keys(given).length === 0 ? null : given;
  const isBulk = job.type !== 'import';
  const path = isBulk ? `/v1/${job.type.replace('bulk_identify_', '')}/bulk_identify` : '/v1/imports';
  const file = shellWord(job.filename);
  const mapped = map === null ? [] : [`-F ${shellWord(`map=${JSON.stringify(map)}`)}`];
  const curl = [
    `curl ${header}`,
    ...mapped,
    ...options.map(([name, value]) => `-F ${shellWord(`${name}=${value}`)}`),
    `-F file=@${file}`,
    publicUrl(path),
  ];
  const flags = [
    ...Object.entries(map ?? {}).map(([theirs, ours]) => `--map ${shellWord(`${theirs}=${ours}`)}`),
    ...options.map(([name, value]) =>
      value === 'true'
        ? `--${name.replaceAll('_', '-')}`
        : `--${name.replaceAll('_', '-')} ${shellWord(value)}`,
    ),
  ];
  const yaml = [
    '- name: same-again',
    '  cron: "0 3 * * *"',
    '  load:',
    '    file:',
    `      path: /data/${JSON.stringify(job.filename).slice(1, -1)}`,
    ...options.map(([name, value]) => `    ${name}: ${yamlValue(value)}`),
    ...(map === null ? [] : ['    map:']),
    ...Object.entries(map ?? {}).map(([theirs, ours]) => `      ${JSON.stringify(theirs)}: ${ours}`),
  ];
  return [
    { name: 'curl', text: curl.join(' \\\n  ') },
    { name: 'Command line', text: [`sluice import ${file}`, ...flags].join(' \\\n  ') },
    {
      name: 'Schedule',
      text: yaml.join('\n'),
      hint: 'Say when it is due, and where its file comes from: docs/schedules.md.',
    },
  ];
}

/** As the API, the flags and a schedule call them. */
function loadOptions(parameters: JobHistory['parameters']): readonly Option[] {
  const { entity, preset, max_errors, dry_run, options, file_format } = parameters;
  const found: Option[] = [];
  const add = (name: string, value: unknown): void => {
    if (value !== null && value !== undefined && value !== false) found.push([name, String(value)]);
  };
  if (entity === 'users' || entity === 'companies') add('entity', entity);
  add('preset', preset);
  add('format', preset === null ? file_format : null);
  add('max_errors', max_errors);
  add('dry_run', dry_run);
  for (const [key, value] of Object.entries((options ?? {}) as Readonly<Record<string, unknown>>)) {
    const name = key === 'nulls' ? 'null' : key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    for (const each of Array.isArray(value) ? value : [value]) add(name, each);
  }
  return found;
}

function exportForms({ request }: JobHistory['parameters']): readonly Form[] {
  const body = JSON.stringify(request ?? {});
  const fields = Object.entries((request ?? {}) as Readonly<Record<string, unknown>>);
  const yaml = fields.map(([name, value]) => `    ${name}: ${JSON.stringify(value)}`);
  return [
    {
      name: 'curl',
      text: [
        `curl ${header}`,
        "-H 'Content-Type: application/json'",
        `-d ${shellWord(body)}`,
        publicUrl('/api/v1/analytics/exports'),
      ].join(' \\\n  '),
    },
    {
      name: 'Schedule',
      text: [
        '- name: same-again',
        '  cron: "0 3 * * *"',
        fields.length === 0 ? '  export: {}' : '  export:',
        ...yaml,
      ].join('\n'),
      hint: 'Say when it is due: docs/schedules.md.',
    },
  ];
}

function deletionForms(job: JobDetail, { purge_exports }: JobHistory['parameters']): readonly Form[] {
  const what = job.type === 'delete_users' ? 'users' : 'companies';
  const id = what === 'users' ? 'user_ids' : 'company_ids';
  const body = { [id]: ['…'], ...(purge_exports === true ? { purge_exports: true } : {}) };
  return [
    {
      name: 'curl',
      text: [
        `curl -X DELETE ${header}`,
        "-H 'Content-Type: application/json'",
        `-d ${shellWord(JSON.stringify(body))}`,
        publicUrl(`/v1/${what}`),
      ].join(' \\\n  '),
      hint: 'The ids are not kept with the job; …/outcomes has them.',
    },
  ];
}

function yamlValue(text: string): string {
  return /^(?:true|false|\d+)$/.test(text) ? text : JSON.stringify(text);
}
