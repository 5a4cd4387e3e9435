import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../lib/api.ts';
import { useAction } from '../../lib/use-data.ts';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { Problems } from '../../ui/problems.tsx';

const ends = [
  ['completed', 'completed'],
  ['completed_with_rejects', 'completed, with refused records'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
] as const;
const kinds = [
  ['load', 'loads'],
  ['export', 'exports'],
  ['schedule', 'runs of schedules'],
] as const;

/** A webhook or an address that is to be told of the ends of jobs. `onMade` gets the secret of a webhook, which is shown once. */
export function NewSubscription({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (secret: string | null) => void;
}): VNode {
  const [target, setTarget] = useState('');
  const [on, setOn] = useState<readonly string[]>(['completed', 'completed_with_rejects', 'failed']);
  const [types, setTypes] = useState<readonly string[]>(['load', 'export']);
  const make = useAction(async () => {
    const text = target.trim();
    const body = { ...(text.includes('://') ? { url: text } : { email: text }), on, types };
    const { secret } = await api<{ readonly secret: string | null }>('/v1/subscriptions', {
      method: 'POST',
      body,
    });
    onMade(secret);
    onClose();
  });
  return (
    <Dialog
      title="Notify somebody"
      onClose={onClose}
      foot={
        <button
          type="button"
          class="button button-main"
          disabled={target.trim() === '' || on.length === 0 || types.length === 0 || make.isRunning}
          onClick={() => void make.run()}
        >
          Notify
        </button>
      }
    >
      <Problems error={make.error} />
      <Field label="Webhook or address" hint="https://example.com/hooks, or ops@example.com">
        <input
          class="wide"
          type="text"
          value={target}
          spellcheck={false}
          onInput={(event) => setTarget(event.currentTarget.value)}
        />
      </Field>
      <Checks title="Outcomes" all={ends} chosen={on} onChange={setOn} />
      <Checks title="Jobs" all={kinds} chosen={types} onChange={setTypes} />
    </Dialog>
  );
}

function Checks({
  title,
  all,
  chosen,
  onChange,
}: {
  readonly title: string;
  readonly all: readonly (readonly [value: string, text: string])[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}): VNode {
  const toggle = (value: string): void =>
    onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value]);
  return (
    <fieldset class="checks">
      <legend class="field-label">{title}</legend>
      {all.map(([value, text]) => (
        <label key={value}>
          <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

export function Secret({ text, onClose }: { readonly text: string; readonly onClose: () => void }): VNode {
  return (
    <Dialog title="The secret, shown only this once" onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="code" tabIndex={0}>
        {text}
      </pre>
      <div class="row">
        <CopyButton text={text} label="Copy the secret" />
      </div>
      <p class="hint">It signs each webhook: docs/notifications.md.</p>
    </Dialog>
  );
}
