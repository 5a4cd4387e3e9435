import type { VNode } from 'preact';
import { useLocation } from 'preact-iso';
import { api, mayUse, session } from '../lib/api.ts';
import { formatCount, timeZone } from '../lib/format.ts';
import { publicUrl, screenHref } from '../lib/place.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { CopyAs } from '../ui/copy.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Problems } from '../ui/problems.tsx';
import { ExportForm } from './export-form.tsx';
import { History } from './export-history.tsx';
import { type ExportPreview, PreviewPanel } from './export-preview.tsx';
import { bodyOf, commandOf, curlOf, fields, scheduleOf, type Wish } from './export-wish.ts';

const path = '/api/v1/analytics/exports';

/** An export is put together here; the server says what it would hold before it is started. */
export function Export(): VNode {
  const query = useQuery();
  const { route } = useLocation();
  const wish = Object.fromEntries(fields.map((name) => [name, query.get(name)])) as unknown as Wish;
  const body = bodyOf(wish);
  const text = JSON.stringify(body);
  const preview = useData(text, (signal) =>
    api<ExportPreview>(`${path}/preview`, { method: 'POST', body: text, headers: jsonType, signal }),
  );
  const start = useAction(async () => {
    const job = await api<{ readonly job_id: string }>(path, { method: 'POST', body });
    route(screenHref(`/export/${job.job_id}`));
  });
  const isCounted = preview.data !== undefined && preview.error === null && !preview.isLoading;
  const mayExport = mayUse('export');
  const zone = wish.zone === 'local' ? timeZone : 'UTC';
  return (
    <Page
      title="Export"
      actions={
        <button
          type="button"
          class="button button-main"
          disabled={!isCounted || !mayExport || start.isRunning}
          title={mayExport ? undefined : 'The key lacks the scope export'}
          onClick={() => void start.run()}
        >
          {isCounted
            ? `Export ${preview.data?.is_exact === false ? 'about ' : ''}${formatCount(preview.data?.rows ?? 0)} rows`
            : 'Export'}
        </button>
      }
    >
      <Problems error={start.error} />
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
                  text: scheduleOf(body, session.value?.environment ?? 'default', zone),
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

const jsonType = { 'content-type': 'application/json' };
