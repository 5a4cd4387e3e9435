import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { Confirm } from '../../ui/dialog.tsx';

type Act = 'cancel' | 'retry';

interface Answer {
  readonly count: number;
  readonly done: number;
  readonly refused: readonly { readonly job_id: string; readonly message: string }[];
}

const wordings = {
  cancel: {
    title: 'Cancel jobs',
    sentence: (jobs: string) =>
      `${jobs} that match have not ended and will be cancelled. What they have applied stays.`,
    none: 'No job that matches can be cancelled.',
  },
  retry: {
    title: 'Retry jobs',
    sentence: (jobs: string) => `${jobs} that match failed or were cancelled, and will be queued again.`,
    none: 'No job that matches can be retried.',
  },
} as const;

/** Cancels or retries what the filters match. The server counts first, and does nothing if it is another number by then. */
export function BulkActions({
  filter,
  onDone,
}: {
  readonly filter: Readonly<Record<string, string>>;
  readonly onDone: () => void;
}): VNode {
  const [asked, setAsked] = useState<Act | null>(null);
  const [outcome, setOutcome] = useState<Answer | null>(null);
  const ask = (act: Act, expected?: number, signal?: AbortSignal): Promise<Answer> =>
    api<Answer>(`/v1/background_jobs/${act}`, {
      method: 'POST',
      body: { filter, ...(expected === undefined ? {} : { expected_count: expected }) },
      ...(signal === undefined ? {} : { signal }),
    });
  const may = mayUse('import');
  return (
    <>
      {outcome === null ? null : (
        <span class="muted num" role="status">
          {formatCount(outcome.done)} of {formatCount(outcome.count)} done
          {outcome.refused.length === 0 ? '' : `, ${formatCount(outcome.refused.length)} refused`}
        </span>
      )}
      {(['cancel', 'retry'] as const).map((act) => (
        <button
          key={act}
          type="button"
          class="button"
          disabled={!may}
          title={may ? undefined : 'Needs a key with the scope import'}
          onClick={() => setAsked(act)}
        >
          {wordings[act].title} …
        </button>
      ))}
      {asked === null ? null : (
        <Confirm
          title={wordings[asked].title}
          isDestructive={asked === 'cancel'}
          count={async (signal) => (await ask(asked, undefined, signal)).count}
          sentence={(count) =>
            count === 0 ? wordings[asked].none : wordings[asked].sentence(plural(count, 'job'))
          }
          verb={(count) => `${asked === 'cancel' ? 'Cancel' : 'Retry'} ${plural(count, 'job')}`}
          act={async (count) => {
            setOutcome(await ask(asked, count));
            onDone();
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}
