import type { VNode } from 'preact';
import { useLocation } from 'preact-iso';
import type { ExportPreview } from '../../../../api/export.ts';
import { publicUrl, screenHref, useQuery } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatBytes, formatCount, timeZone } from '../../lib/format.ts';
import { type Loaded as LoadedData, useData } from '../../lib/use-data.ts';
import { ActionButton, Code, CopyAs } from '../../ui/button.tsx';
import { Page, Section } from '../../ui/page.tsx';
import { Loading, Notice, Problems } from '../../ui/problems.tsx';
import { ExportForm } from './export-form.tsx';
import { History } from './export-history.tsx';
import { bodyOf, commandOf, curlOf, fields, scheduleOf, type Wish } from './export-wish.ts';

const path = '/api/v1/analytics/exports';

/** Puts an export together. The server says what it would hold before it is started. */
export function Export(): VNode {
  const query = useQuery();
  const { route } = useLocation();
  const wish = Object.fromEntries(fields.map((name) => [name, query.get(name)])) as Wish;
  const body = bodyOf(wish);
  const preview = useData(JSON.stringify(body), (signal) =>
    api<ExportPreview>(`${path}/preview`, { method: 'POST', body, signal }),
  );
  const start = async (): Promise<void> => {
    const { job_id } = await api<{ readonly job_id: string }>(path, { method: 'POST', body });
    route(screenHref(`/export/${job_id}`));
  };
  const counted = preview.error === null && !preview.isLoading ? preview.data : undefined;
  const button =
    counted === undefined ? 'Export' : `Export ${about(counted.is_exact)}${formatCount(counted.rows)} rows`;
  return (
    <Page
      title="Export"
      actions={
        <ActionButton look="main" needs="export" disabled={counted === undefined} act={start}>
          {button}
        </ActionButton>
      }
    >
      <div class="columns export-columns">
        <ExportForm
          wish={wish}
          onChange={(change) => query.set({ ...change, cursor: undefined }, { replace: true })}
        />
        <div class="stack">
          <PreviewPanel {...preview} />
          <Section title="As command or schedule">
            <CopyAs
              forms={[
                { name: 'curl', text: curlOf(body, publicUrl(path)) },
                { name: 'Command line', text: commandOf(body) },
                {
                  name: 'Schedule',
                  text: scheduleOf(body, wish.zone === 'local' ? timeZone : 'UTC'),
                  hint: 'An item of the file that SCHEDULES_FILE names. Its range depends on when it runs: yesterday, last_7_days, this_month, last_month, since_last_success.',
                },
              ]}
            />
          </Section>
        </div>
      </div>
      <History />
    </Page>
  );
}

const names: Readonly<Record<string, string>> = {
  users: 'Users',
  companies: 'Companies',
  events: 'Events',
  stream: 'Stream of all kinds',
};

/** Shows rows and size of the export, and how its files begin. */
function PreviewPanel({ data, error, isLoading, reload }: LoadedData<ExportPreview>): VNode {
  return (
    <Section title="Preview" aside={isLoading ? <span class="faint">Counting …</span> : null}>
      <Problems error={error} onRetry={reload} />
      {error !== null ? null : data === undefined ? (
        <Loading rows={5} label="Counting" />
      ) : (
        <div class="stack" aria-live="polite" aria-busy={isLoading}>
          <dl class="figures">
            <div>
              <dt>Rows</dt>
              <dd>
                {about(data.is_exact)}
                {formatCount(data.rows)}
              </dd>
            </div>
            <div>
              <dt>Size, estimated</dt>
              <dd>{formatBytes(data.bytes)}</dd>
            </div>
          </dl>
          {data.warnings.map(({ message, details }) => (
            <Notice key={details}>
              {message}: {details}
            </Notice>
          ))}
          {data.files.map((file) => (
            <div key={file.dataset} class="begins">
              <h3>
                {names[file.dataset] ?? file.dataset}
                <span class="faint num">
                  {' '}
                  {about(file.is_exact)}
                  {formatCount(file.rows)} · {formatBytes(file.bytes)}
                </span>
              </h3>
              {file.first_rows.length === 0 ? (
                <p class="faint">No rows</p>
              ) : (
                <Code>
                  {file.header === null ? null : <b>{`${file.header}\n`}</b>}
                  {file.first_rows.join('\n')}
                </Code>
              )}
            </div>
          ))}
        </div>
      )}
    </Section>
  );
}

function about(isExact: boolean): string {
  return isExact ? '' : 'about ';
}
