import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import { api, mayUse, type Query, useQuery } from '../../lib/api.ts';
import { visibleText } from '../../lib/format.ts';
import { cancelLoad, isUnfinished, jobPath } from '../../lib/jobs.ts';
import { ActionButton } from '../../ui/controls.tsx';
import { Icon } from '../../ui/drawings.tsx';
import { JobLink, Loading, Notice, Page, Problems } from '../../ui/page.tsx';
import { Columns } from './columns.tsx';
import { Files } from './files.tsx';
import { noOptions, useInspection } from './inspection.ts';
import { withChoices } from './mapping.ts';
import { Plan, Result } from './plan.tsx';
import { Reading } from './reading.tsx';

const steps = {
  file: 'File',
  reading: 'Reading',
  columns: 'Columns',
  plan: 'Plan',
  result: 'Result',
} as const;
type Step = keyof typeof steps;
const inspecting = { reading: Reading, columns: Columns, plan: Plan } as const;

/**
 * A file on its way into the ledger. Everything that was chosen stands in the address, and the server keeps the file: any browser
 * can go back to any step, and nothing is sent twice.
 */
export function Load(): VNode {
  const query = useQuery();
  const asked = query.get('step');
  const step = asked in steps && isReachable(query, asked) ? (asked as Step) : 'file';
  const inspected = useInspection(query);
  const upload = query.get('upload');
  const Shown = step in inspecting ? inspecting[step as keyof typeof inspecting] : null;
  const name = upload === '' ? '' : (inspected.data?.filename ?? '');
  return (
    <Page
      title="Load a file"
      aside={name === '' ? null : <span class="mono muted">{visibleText(name)}</span>}
      actions={Shown && <Cancel query={query} />}
    >
      <Steps query={query} current={step} />
      {mayUse('import') ? null : (
        <Notice>Your key lacks the scope import: you can look, but not load.</Notice>
      )}
      <LikeJob query={query} />
      {step === 'file' ? <Files query={query} /> : null}
      {step === 'result' ? <Result query={query} /> : null}
      {Shown === null ? null : (
        <>
          <Problems error={inspected.error} onRetry={inspected.reload} />
          {inspected.data === undefined && inspected.error === null ? <Loading rows={12} /> : null}
          {inspected.data?.upload_id === upload ? (
            <div class="stack load-step" aria-busy={inspected.isLoading}>
              <Shown query={query} found={withChoices(query, inspected.data)} />
            </div>
          ) : null}
        </>
      )}
    </Page>
  );
}

/** Names the earlier load whose options apply where none are chosen here. */
function LikeJob({ query }: { readonly query: Query }): VNode | null {
  const job = query.get('options_of');
  if (job === '') return null;
  return (
    <p class="row muted">
      <span>
        Options that are not chosen here are those of <JobLink id={job} />.
      </span>
      <a href={query.href({ options_of: undefined, plan: undefined })}>Do not use them</a>
    </p>
  );
}

/** Cancels a plan that runs, and leads back to the choice of a file. The upload expires. */
function Cancel({ query }: { readonly query: Query }): VNode {
  const cancel = async (): Promise<void> => {
    const plan = query.get('plan');
    if (plan !== '' && isUnfinished(await api<LoadDetail>(jobPath(plan)))) await cancelLoad(plan);
    query.go({ ...noOptions, upload: undefined, step: undefined });
  };
  return (
    <ActionButton needs="import" act={cancel}>
      Cancel
    </ActionButton>
  );
}

function isReachable(query: Query, step: string): boolean {
  return step === 'file' || query.get(step === 'result' ? 'job' : 'upload') !== '';
}

/** Shows the steps, the current one, and the way back. */
function Steps({ query, current }: { readonly query: Query; readonly current: Step }): VNode {
  const names = Object.keys(steps) as Step[];
  const at = names.indexOf(current);
  const nav = useRef<HTMLElement>(null);
  const shown = useRef(current);
  // The focus moves to the new step, so that the keyboard goes on from here and not from the top of the page.
  useEffect(() => {
    if (shown.current !== current) nav.current?.querySelector<HTMLElement>('[aria-current]')?.focus();
    shown.current = current;
  }, [current]);
  return (
    <nav aria-label="Steps" ref={nav}>
      <ol class="row">
        {names.map((step, index) => {
          const isDone = index < at && isReachable(query, step);
          const words = (
            <>
              <span class="step-mark num">{isDone ? <Icon name="check" size={10} /> : index + 1}</span>
              {steps[step]}
            </>
          );
          return (
            <li key={step} class="row step" data-done={isDone ? '' : undefined}>
              {isReachable(query, step) ? (
                <a
                  class="row"
                  href={query.href({ step })}
                  aria-current={step === current ? 'step' : undefined}
                >
                  {words}
                </a>
              ) : (
                <span class="row">{words}</span>
              )}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
