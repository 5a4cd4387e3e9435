import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Inspection } from '../../../../api/inspection.ts';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import { type Query, useQuery } from '../../lib/address.ts';
import { api, mayUse } from '../../lib/api.ts';
import { visibleText } from '../../lib/format.ts';
import { cancelLoad, isUnfinished, jobPath } from '../../lib/jobs.ts';
import { removeUpload } from '../../lib/uploads.ts';
import { ActionButton } from '../../ui/button.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Page } from '../../ui/page.tsx';
import { Loading, Notice, Problems } from '../../ui/problems.tsx';
import { withChoices } from './column-role.ts';
import { Columns } from './columns.tsx';
import { Files } from './files.tsx';
import { noOptions, useInspection } from './inspection.ts';
import { Plan, Result } from './plan.tsx';
import { Reading } from './reading.tsx';

const steps = [
  ['file', 'File'],
  ['reading', 'Reading'],
  ['columns', 'Columns'],
  ['plan', 'Plan'],
  ['result', 'Result'],
] as const;
type Step = (typeof steps)[number][0];

/**
 * A file on its way into the ledger. Everything that was chosen stands in the address, and the server keeps the file: any browser
 * can go back to any step, and nothing is sent twice.
 */
export function Load(): VNode {
  const query = useQuery();
  const step = stepOf(query);
  const isInspected = step === 'reading' || step === 'columns' || step === 'plan';
  const inspected = useInspection(query);
  const name = query.get('upload') === '' ? '' : (inspected.data?.filename ?? '');
  return (
    <Page
      title="Load a file"
      aside={name === '' ? null : <span class="mono muted">{visibleText(name)}</span>}
      actions={isInspected ? <Cancel query={query} /> : undefined}
    >
      <Steps query={query} current={step} />
      {mayUse('import') ? null : (
        <Notice>Your key lacks the scope import: you can look, but not load.</Notice>
      )}
      {step === 'file' ? <Files query={query} /> : null}
      {isInspected ? <Problems error={inspected.error} onRetry={inspected.reload} /> : null}
      {isInspected && inspected.data === undefined && inspected.error === null ? <Loading rows={12} /> : null}
      {isInspected && inspected.data !== undefined && inspected.data.upload_id === query.get('upload') ? (
        <div class="load-step" aria-busy={inspected.isLoading}>
          <Inspected step={step} query={query} found={withChoices(query, inspected.data)} />
        </div>
      ) : null}
      {step === 'result' ? <Result query={query} jobId={query.get('job')} /> : null}
    </Page>
  );
}

/** Cancels a plan that runs, removes the upload, and leads back to the choice of a file. */
function Cancel({ query }: { readonly query: Query }): VNode {
  const cancel = async (): Promise<void> => {
    const plan = query.get('plan');
    if (plan !== '' && isUnfinished(await api<LoadDetail>(jobPath(plan)))) await cancelLoad(plan);
    await removeUpload(query.get('upload'));
    query.set({ ...noOptions, upload: undefined, step: undefined });
  };
  return (
    <ActionButton needs="import" act={cancel}>
      Cancel<span class="visually-hidden"> and remove the upload</span>
    </ActionButton>
  );
}

interface InspectedProps {
  readonly step: Step;
  readonly query: Query;
  readonly found: Inspection;
}

function Inspected({ step, ...props }: InspectedProps): VNode {
  if (step === 'columns') return <Columns {...props} />;
  if (step === 'plan') return <Plan {...props} />;
  return <Reading {...props} />;
}

function stepOf(query: Query): Step {
  const asked = steps.find(([step]) => step === query.get('step'))?.[0] ?? 'file';
  return isReachable(query, asked) ? asked : 'file';
}

function isReachable(query: Query, step: Step): boolean {
  if (step === 'file') return true;
  return query.get(step === 'result' ? 'job' : 'upload') !== '';
}

/** Shows the steps, the current one, and the way back. */
function Steps({ query, current }: { readonly query: Query; readonly current: Step }): VNode {
  const at = steps.findIndex(([step]) => step === current);
  const nav = useRef<HTMLElement>(null);
  const shown = useRef(current);
  // The focus moves to the new step, so that the keyboard goes on from here and not from the top of the page.
  useEffect(() => {
    if (shown.current !== current) nav.current?.querySelector<HTMLElement>('[aria-current]')?.focus();
    shown.current = current;
  }, [current]);
  return (
    <nav aria-label="Steps" ref={nav}>
      <ol class="steps">
        {steps.map(([step, title], index) => (
          <li key={step} data-done={index < at ? '' : undefined}>
            {isReachable(query, step) ? (
              <a href={query.href({ step })} aria-current={step === current ? 'step' : undefined}>
                <StepMark index={index} isDone={index < at} />
                {title}
              </a>
            ) : (
              <span>
                <StepMark index={index} isDone={false} />
                {title}
              </span>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

function StepMark({ index, isDone }: { readonly index: number; readonly isDone: boolean }): VNode {
  return <span class="step-mark num">{isDone ? <Icon name="check" size={10} /> : index + 1}</span>;
}
