import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { screenHref, useQuery } from '../../../console/client/lib/address.ts';
import { api } from '../../../console/client/lib/api.ts';
import { useData } from '../../../console/client/lib/data.ts';
import { slugOf, timeZone } from '../../../console/client/lib/format.ts';
import { type JobDetail, jobPath } from '../../../console/client/lib/jobs.ts';
import { InputField } from '../../../console/client/ui/controls.tsx';
import { Loaded, Page, Section } from '../../../console/client/ui/page.tsx';
import { EditorForm } from '../../../console/client/ui/text-editor.tsx';
import { exportOf } from '../../../export/console/request.tsx';
import type { ScheduleList } from '../api.ts';
import { writeYaml } from './yaml.ts';

const path = '/v1/schedules';
const variable = `\${env:SCHEDULE_TOKEN}`;

export function NewSchedule(): VNode {
  const from = useQuery().get('from');
  const model = useData(from, async (signal): Promise<Model> => {
    const { data: schedules } = await api<ScheduleList>(path, { signal });
    if (from === '') return { schedules };
    return { schedules, job: await api<JobDetail>(jobPath(from), { signal }) };
  });
  return (
    <Page title="New schedule" parent={{ title: 'Schedules', href: screenHref('/schedules') }}>
      <Loaded of={model}>{(data) => <Draft model={data} />}</Loaded>
    </Page>
  );
}

interface Model {
  readonly schedules: ScheduleList['data'];
  readonly job?: JobDetail;
}

function nameOf(job: JobDetail | undefined): string {
  const name = job?.type === 'export' ? 'export' : (job?.filename ?? 'users');
  return `nightly-${slugOf(name.replace(/\.[a-z]+(\.gz)?$/i, ''))}`;
}

function draftOf({ schedules, job }: Model): object {
  const { kind, name = '' } = job?.origin ?? {};
  const source = kind === 'schedule' ? schedules.find(({ schedule }) => schedule === name) : undefined;
  const { load: scheduledLoad } = (source?.definition ?? {}) as { readonly load?: object };
  const work: { readonly load?: object } = (job && workOf(job)) ?? { load: {} };
  const http = {
    url: `https://partner.example.com/${encodeURIComponent(job?.filename ?? 'users.csv')}`,
    headers: { Authorization: `Bearer ${variable}` },
  };
  const newContent = work.load ? { load: { http, ...work.load } } : work;
  const content = scheduledLoad ? { load: scheduledLoad } : newContent;
  return { cron: '0 3 * * *', timezone: timeZone, ...content };
}

function Draft({ model }: { readonly model: Model }): VNode {
  const [name, setName] = useState(nameOf(model.job));
  const isTaken = model.schedules.some(({ schedule }) => schedule === name);
  return (
    <Section title="Definition">
      <InputField label="Name" required value={name} onInput={setName} />
      <ScheduleEditor name={name} definition={draftOf(model)} isNew isTaken={isTaken} />
    </Section>
  );
}

function workOf(job: JobDetail): { readonly load?: object; readonly export?: object } {
  if (job.type === 'export') {
    const { from: _from, to: _to, since = null, ...rest } = exportOf(job);
    return { export: { range: since === null ? 'yesterday' : 'since_last_success', ...rest } };
  }
  const {
    entity,
    preset,
    format,
    guard,
    map,
    dry_run: _dry,
    plan: _plan,
    file_of: _file,
    ...others
  } = job.options;
  const all = {
    entity: entity === 'users' || entity === 'companies' ? entity : null,
    ...(preset == null ? { format } : { preset }),
    ...others,
    guard,
    map: Object.keys(map ?? {}).length === 0 ? null : map,
  };
  const isSet = (value: unknown): boolean => value !== null && value !== undefined && value !== false;
  const load = Object.entries(all)
    .map(([name, value]) => [name, [value].flat().filter(isSet)] as const)
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => [name, values.length > 1 ? values : values[0]]);
  return { load: Object.fromEntries(load) };
}

interface EditorProps {
  readonly name: string;
  readonly definition: object;
  readonly isNew?: boolean;
  readonly isTaken?: boolean;
  readonly onSaved?: () => void;
}

export function ScheduleEditor({ name, definition, isNew, isTaken, onSaved }: EditorProps): VNode {
  const { route } = useLocation();
  const { name: _, ...members } = definition as { readonly name?: string };
  const savedText = writeYaml(members);
  const [text, setText] = useState(savedText);
  const save = async (): Promise<void> => {
    await api(`${path}/${encodeURIComponent(name)}`, { method: 'PUT', body: { file: text } });
    if (isNew) route(screenHref(`/schedules/${name}`));
    else onSaved?.();
  };
  return (
    <EditorForm
      label="As YAML"
      hint={
        <>
          As in the file of <code>sluice schedules apply</code>: docs/schedules.md. Secrets are variables of
          the workers, such as <code>{variable}</code>, which <code>SCHEDULES_VARIABLES</code> grants this
          environment.
        </>
      }
      text={text}
      onInput={setText}
      verb={isNew ? 'Create the schedule' : 'Save'}
      scopes={/^export:/m.test(text) ? ['import', 'export'] : ['import']}
      isComplete={isTaken !== true && (isNew === true || text !== savedText)}
      act={save}
    >
      {isTaken ? <p class="hint">There is a schedule {name}. Choose another name.</p> : null}
    </EditorForm>
  );
}
