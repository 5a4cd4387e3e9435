import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import type { LoadJob } from '../../../console/client/lib/jobs.ts';
import type { Part } from '../../../console/client/part.ts';
import { Check } from '../../../console/client/ui/controls.tsx';
import { JobLink } from '../../../console/client/ui/page.tsx';
import type { OnFailureField } from '../api.ts';

export const part: Part = {
  jobFacts: (job) => {
    const field = fieldOf(job);
    return [
      ['If it fails', field?.state === 'ready' ? 'It is undone' : field?.summary],
      ['Undo', field?.job_id && <JobLink id={field.job_id} />],
    ];
  },
  loadOption: {
    fields: ['on_failure'],
    otherFields: [],
    decides: () => false,
    Control: OnFailure,
  },
};

function fieldOf(job: LoadJob): OnFailureField {
  return (job as { on_failure?: OnFailureField }).on_failure ?? null;
}

function OnFailure({ query }: { readonly query: Query }): VNode {
  const isOn = query.get('on_failure') === 'undo';
  return (
    <Check
      label="Undo the load if it fails"
      isOn={isOn}
      onChange={() => query.set({ on_failure: isOn ? undefined : 'undo' })}
    />
  );
}
