import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Subscription, TestDelivery } from '../../../../api/delivery.ts';
import {
  defaultJobKinds,
  defaultOutcomes,
  type JobKind,
  jobKinds,
  type Outcome,
  outcomes,
} from '../../../../domain/notification.ts';
import { api, apiTotal, session } from '../../lib/api.ts';
import { formatMs, plural, visibleText } from '../../lib/format.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { ActionButton, Button } from '../../ui/button.tsx';
import { Confirm, FormDialog, SecretDialog } from '../../ui/dialog.tsx';
import { Checks, Field } from '../../ui/field.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loaded } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { answerOf, deliveriesPath } from './delivery.tsx';

const path = '/v1/subscriptions';

/** Lists who is notified of the ends of jobs. */
export function Subscriptions({ onSent }: { readonly onSent: () => void }): VNode {
  const all = useData(path, (signal) => api<readonly Subscription[]>(path, { signal }));
  const isAdmin = session.value?.is_admin === true;
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<Subscription | null>(null);
  const made = (text: string | null): void => {
    setSecret(text);
    all.reload();
  };
  return (
    <Section
      title="Who is notified"
      aside={
        <Button
          disabled={!isAdmin}
          title={isAdmin ? undefined : 'For administrators: sign in with ADMIN_KEY'}
          onClick={() => setAdding(true)}
        >
          Notify somebody …
        </Button>
      }
      flush
    >
      {isAdding ? <NewSubscription onClose={() => setAdding(false)} onMade={made} /> : null}
      {secret === null ? null : (
        <SecretDialog
          noun="secret"
          text={secret}
          hint="It signs each webhook: docs/notifications.md."
          onClose={() => setSecret(null)}
        />
      )}
      {leaving === null ? null : <Leave of={leaving} onDone={all.reload} onClose={() => setLeaving(null)} />}
      <Loaded of={all} rows={2}>
        {(data) => (
          <Table
            caption="Subscriptions"
            isTall
            columns={columnsOf(onSent, isAdmin ? setLeaving : null)}
            rows={data}
            keyOf={({ id }) => id}
            empty={
              <Empty title="Nobody is notified of the ends of jobs">
                <code>sluice notifications add --url https://example.com/hooks</code>
              </Empty>
            }
          />
        )}
      </Loaded>
    </Section>
  );
}

type OnLeave = ((subscription: Subscription) => void) | null;

function columnsOf(onSent: () => void, onLeave: OnLeave): readonly Column<Subscription>[] {
  const remove: Column<Subscription> = {
    title: 'Remove',
    cell: (each) => (
      <Button look="quiet" onClick={() => onLeave?.(each)}>
        Remove …<span class="visually-hidden"> {each.target}</span>
      </Button>
    ),
  };
  return [
    { title: 'Recipient', cell: ({ target }) => <span class="name">{visibleText(target)}</span> },
    { title: 'State', cell: ({ disabled_reason }) => <State disabledReason={disabled_reason} /> },
    {
      title: 'Notified of',
      is: 'minor',
      cell: ({ on, types }) => `${types.join(', ')}: ${on.join(', ').replaceAll('_', ' ')}`,
    },
    { title: 'Action', cell: (each) => <Ping of={each} onSent={onSent} /> },
    ...(onLeave === null ? [] : [remove]),
  ];
}

function State({ disabledReason }: { readonly disabledReason: string | null }): VNode {
  if (disabledReason === null) return <Badge tone="good">live</Badge>;
  return (
    <span class="two-lines">
      <span>
        <Badge tone="bad">disabled</Badge>
      </span>
      <span class="faint break">{visibleText(disabledReason)}</span>
    </span>
  );
}

function Ping({ of, onSent }: { readonly of: Subscription; readonly onSent: () => void }): VNode {
  const [result, setResult] = useState<TestDelivery | null>(null);
  const ping = async (): Promise<void> => {
    setResult(await api<TestDelivery>(`${path}/${of.id}/test`, { method: 'POST' }));
    onSent();
  };
  const arrived = result?.delivered === true ? `arrived in ${formatMs(result.took_ms)}` : null;
  return (
    <div class="row">
      <ActionButton needs="import" disabled={of.disabled_reason !== null} act={ping}>
        Send a ping
      </ActionButton>
      <span aria-live="polite" class={result?.delivered === false ? 'bad break' : 'muted'}>
        {result === null ? '' : (arrived ?? answerOf(result))}
      </span>
    </div>
  );
}

interface LeaveProps {
  readonly of: Subscription;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function Leave({ of, onDone, onClose }: LeaveProps): VNode {
  return (
    <Confirm
      title={`Stop notifying ${visibleText(of.target)}`}
      isDestructive
      mayBeNone={() => true}
      count={(signal) => apiTotal(deliveriesPath, { state: 'pending' }, signal)}
      sentence={(count) =>
        `Nothing more is sent there, and its secret is deleted. ${plural(count, 'delivery', 'deliveries')} of the environment ${count === 1 ? 'is' : 'are'} pending; those to this recipient are given up.`
      }
      verb={() => 'Remove it'}
      act={async () => {
        await api(`${path}/${of.id}`, { method: 'DELETE' });
        onDone();
      }}
      onClose={onClose}
    />
  );
}

const outcomeNames: Readonly<Record<Outcome, string>> = {
  completed: 'completed',
  completed_with_rejects: 'completed, with refused records',
  failed: 'failed',
  cancelled: 'cancelled',
};
const kindNames: Readonly<Record<JobKind, string>> = {
  load: 'loads',
  export: 'exports',
  schedule: 'runs of schedules',
};

interface NewProps {
  readonly onClose: () => void;
  /** Receives the secret of a webhook, which is shown once; `null` for an address. */
  readonly onMade: (secret: string | null) => void;
}

/** Adds a webhook or an e-mail address that is notified of the ends of jobs. */
function NewSubscription({ onClose, onMade }: NewProps): VNode {
  const [target, setTarget] = useState('');
  const [on, setOn] = useState(defaultOutcomes);
  const [types, setTypes] = useState(defaultJobKinds);
  const make = async (): Promise<void> => {
    const text = target.trim();
    const body = { ...(text.includes('://') ? { url: text } : { email: text }), on, types };
    onMade((await api<{ readonly secret: string | null }>(path, { method: 'POST', body })).secret);
  };
  return (
    <FormDialog
      title="Notify somebody"
      verb="Notify"
      isComplete={target.trim() !== '' && on.length > 0 && types.length > 0}
      act={make}
      onClose={onClose}
    >
      <Field label="Webhook or address" hint="https://example.com/hooks, or ops@example.com">
        <input
          class="wide"
          type="text"
          value={target}
          spellcheck={false}
          onInput={(event) => setTarget(event.currentTarget.value)}
        />
      </Field>
      <Checks
        label="Outcomes"
        options={outcomes.map((each) => [each, outcomeNames[each]])}
        chosen={on}
        onChange={setOn}
      />
      <Checks
        label="Jobs"
        options={jobKinds.map((each) => [each, kindNames[each]])}
        chosen={types}
        onChange={setTypes}
      />
    </FormDialog>
  );
}
