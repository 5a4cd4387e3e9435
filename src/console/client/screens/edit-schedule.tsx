import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { JobHistory } from '../../../api/job.ts';
import type { Schedule } from '../../../api/source.ts';
import { api, screenHref, useApi, useQuery, useSubmit } from '../lib/api.ts';
import { timeZone, visibleText } from '../lib/format.ts';
import { type JobDetail, jobPath } from '../lib/jobs.ts';
import { workOf } from '../lib/repeat.ts';
import { Button, Choices, Field, InputField, type Options, SelectField } from '../ui/controls.tsx';
import { Fold, Loading, Notice, Page, Problems, Section } from '../ui/page.tsx';

type Values = Readonly<Record<string, unknown>>;

/** A schedule as the API takes it. What has no field of its own is written as JSON. */
interface Definition extends Values {
  readonly name: string;
  readonly cron: string;
  readonly timezone: string;
  readonly load?: Values;
  readonly export?: Values;
}

const path = '/v1/schedules';
const variable = `\${env:SCHEDULE_TOKEN}`;

type SourceField = readonly [member: string, label: string, placeholder: string];

/** The sources of loads, and the fields of each; a member such as `headers.Authorization` is one of an object. */
const sources = {
  http: [
    'Web address',
    [
      ['url', 'Address', 'https://partner.example.com/users.csv'],
      ['headers.Authorization', 'Header Authorization', `Bearer ${variable}`],
    ],
  ],
  s3: [
    'Bucket',
    [
      ['url', 'Bucket and prefix', 's3://bucket/prefix'],
      ['access_key', 'Access key', variable],
      ['secret_key', 'Secret key', variable],
      ['region', 'Region', 'us-east-1'],
      ['endpoint', 'Endpoint, if it is not Amazon', ''],
    ],
  ],
  files: ['Files on the server', [['pattern', 'Path in the folder of the environment', 'users-*.csv']]],
  command: ['Command', [['name', 'Name in SOURCE_COMMANDS', 'nightly']]],
} as const satisfies Readonly<Record<string, readonly [title: string, fields: readonly SourceField[]]>>;

type SourceKind = keyof typeof sources;
const sourceKinds = Object.keys(sources) as readonly SourceKind[];

/** A new schedule, of nothing yet or of what a job did, or one that is there. */
export function EditSchedule(): VNode {
  const { schedule } = useRoute().params;
  const from = useQuery().get('from');
  const job = useApi<JobDetail>(from === '' ? null : jobPath(from));
  const history = useApi<JobHistory>(from === '' ? null : `${jobPath(from)}/history`);
  const origin = history.data?.origin;
  // What a schedule loaded has a source, which is that schedule's.
  const model = schedule ?? (origin?.kind === 'schedule' ? (origin.name ?? undefined) : undefined);
  const known = useApi<Schedule>(model === undefined ? null : `${path}/${encodeURIComponent(model)}`);
  // A draft does without a schedule that is gone.
  const isModelKnown =
    model === undefined || known.data !== undefined || (schedule === undefined && known.error !== null);
  const isKnown = isModelKnown && (from === '' || (job.data !== undefined && history.data !== undefined));
  const found = [job, history, ...(schedule === undefined ? [] : [known])];
  const failed = found.filter(({ error }) => error !== null);
  const retry = (): void => {
    for (const { reload } of failed) reload();
  };
  const own = known.data?.definition as Definition | null | undefined;
  return (
    <Page
      title={schedule === undefined ? 'New schedule' : visibleText(schedule)}
      parent={{ title: 'Schedules', href: screenHref('/schedules') }}
    >
      <Problems error={failed[0]?.error ?? null} onRetry={retry} />
      {!isKnown ? (
        failed.length === 0 && <Loading />
      ) : schedule === undefined ? (
        <Form isNew first={draftOf(job.data, history.data, own?.load)} />
      ) : own == null ? (
        <Notice>This schedule comes from the schedules file: change it there.</Notice>
      ) : (
        <Form isNew={false} first={own} />
      )}
    </Page>
  );
}

const nightly = '0 3 * * *';

function draftOf(job?: JobDetail, history?: JobHistory, load?: Values): Definition {
  const work = job && history && workOf(job, history);
  const slug = (job?.type === 'export' ? 'export' : (job?.filename ?? 'users'))
    .toLowerCase()
    .replace(/\.[a-z]+(\.gz)?$/, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 50);
  return {
    name: `nightly-${slug}`,
    cron: nightly,
    timezone: timeZone,
    ...(load ? { load } : (work ?? { load: {} })),
  };
}

const times: Options = [
  ['0 * * * *', 'Every hour'],
  [nightly, 'Every night at 3'],
  ['0 3 * * 1', 'Mondays at 3'],
  ['0 3 1 * *', 'On the 1st at 3'],
  ['', 'Other'],
];

interface PartProps {
  readonly draft: Definition;
  readonly onChange: (change: Partial<Definition>) => void;
}

function Form({ first, isNew }: { readonly first: Definition; readonly isNew: boolean }): VNode {
  const { route } = useLocation();
  const [draft, setDraft] = useState(first);
  const [rest, setRest] = useState(() => JSON.stringify(restOf(first), null, 2));
  const options = readObject(rest);
  const saving = useSubmit(async () => {
    const body = withRest(draft, options ?? {});
    await api(isNew ? path : `${path}/${first.name}`, { method: isNew ? 'POST' : 'PUT', body });
    route(screenHref(`/schedules/${draft.name}`));
  });
  const part = { draft, onChange: (change: Partial<Definition>) => setDraft({ ...draft, ...change }) };
  return (
    <form class="stack" onSubmit={saving.onSubmit}>
      <div class="columns">
        {draft.export === undefined ? <Source {...part} /> : <Range {...part} />}
        <When {...part} isNew={isNew} />
      </div>
      <Fold title="Options" aside={<span class="faint">{optionNames(restOf(first))}</span>}>
        <Field
          label="As JSON"
          hint={
            options === null
              ? 'This is not a JSON object.'
              : 'The fields of the schedules file: docs/schedules.md'
          }
        >
          <textarea
            class="mono"
            rows={12}
            spellcheck={false}
            value={rest}
            aria-invalid={options === null}
            onInput={(event) => setRest(event.currentTarget.value)}
          />
        </Field>
      </Fold>
      <Problems error={saving.error} />
      <div class="row">
        <Button
          type="submit"
          look="main"
          needs={draft.export === undefined ? 'import' : ['import', 'export']}
          disabled={saving.isRunning || options === null}
        >
          {isNew ? 'Create the schedule' : 'Save'}
        </Button>
      </div>
    </form>
  );
}

function When({ draft, onChange, isNew }: PartProps & { readonly isNew: boolean }): VNode {
  const isUsual = times.some(([cron]) => cron === draft.cron);
  const [isOther, setOther] = useState(!isUsual);
  return (
    <Section title="When">
      {isNew ? (
        <InputField label="Name" required value={draft.name} onInput={(name) => onChange({ name })} />
      ) : null}
      <Choices
        label="Due"
        value={isOther ? '' : draft.cron}
        options={times}
        onChange={(cron) => {
          setOther(cron === '');
          if (cron !== '') onChange({ cron });
        }}
      />
      {isOther ? (
        <InputField
          label="Cron expression"
          hint="Minute, hour, day of the month, month, day of the week"
          value={draft.cron}
          onInput={(cron) => onChange({ cron })}
        />
      ) : null}
      <InputField label="Time zone" value={draft.timezone} onInput={(zone) => onChange({ timezone: zone })} />
    </Section>
  );
}

function Source({ draft: { load = {} }, onChange }: PartProps): VNode {
  const kind = kindOf(load);
  const [, fields] = sources[kind];
  const given = (load[kind] ?? {}) as Values;
  return (
    <Section title="Load from">
      <SelectField
        label="Source"
        value={kind}
        options={sourceKinds.map((each) => [each, sources[each][0]])}
        onChange={(chosen) => onChange({ load: { ...without(load, sourceKinds), [chosen]: {} } })}
      />
      {fields.map(([member, label, placeholder]) => (
        <InputField
          key={member}
          label={label}
          placeholder={placeholder}
          value={String(member.split('.').reduce<unknown>((at, name) => (at as Values)?.[name], given) ?? '')}
          onInput={(text) => onChange({ load: { ...load, [kind]: withMember(given, member, text) } })}
        />
      ))}
      <p class="hint">
        Secrets are variables of the workers, such as <code>{variable}</code>, which{' '}
        <code>SCHEDULES_VARIABLES</code> grants this environment.
      </p>
    </Section>
  );
}

const ranges: Options = [
  ['', 'Everything, or from and to in the options'],
  ['since_last_success', 'What changed since the last run'],
  ['today', 'Today'],
  ['yesterday', 'Yesterday'],
  ['last_7_days', 'The last 7 days'],
  ['this_month', 'This month'],
  ['last_month', 'Last month'],
];

function Range({ draft: { export: exported = {} }, onChange }: PartProps): VNode {
  return (
    <Section title="Export">
      <SelectField
        label="Range"
        value={String(exported['range'] ?? '')}
        options={ranges}
        onChange={(range) => onChange({ export: withMember(exported, 'range', range) })}
      />
    </Section>
  );
}

function kindOf(load: Values): SourceKind {
  return sourceKinds.find((kind) => load[kind] !== undefined) ?? 'http';
}

function without(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

/** Sets a member, or one of an object in it; an empty text removes it. */
function withMember(values: Values, member: string, text: string): Values {
  const [name = '', inner] = member.split('.');
  const value = inner === undefined ? text : withMember((values[name] ?? {}) as Values, inner, text);
  return value === '' ? without(values, [name]) : { ...values, [name]: value };
}

/** Returns what has no field of its own. */
function restOf({ load, export: exported, ...definition }: Definition): Values {
  return {
    ...without(definition, ['name', 'cron', 'timezone']),
    ...(exported === undefined
      ? { load: without(load ?? {}, sourceKinds) }
      : { export: without(exported, ['range']) }),
  };
}

function withRest({ name, cron, timezone, load = {}, export: exported }: Definition, rest: Values): Values {
  const kind = kindOf(load);
  const work =
    exported === undefined
      ? { load: { ...(rest['load'] as Values), [kind]: load[kind] ?? {} } }
      : {
          export: {
            ...(rest['export'] as Values),
            ...withMember({}, 'range', String(exported['range'] ?? '')),
          },
        };
  return { name, cron, timezone, ...rest, ...work };
}

function optionNames(rest: Values): string {
  return Object.keys((rest['load'] ?? rest['export'] ?? {}) as Values).join(', ');
}

function readObject(text: string): Values | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : null;
  } catch {
    return null;
  }
}
