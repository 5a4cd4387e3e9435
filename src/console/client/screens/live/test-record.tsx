import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../lib/api.ts';
import { useAction } from '../../lib/use-data.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { Problems } from '../../ui/problems.tsx';

/** An event of a user, stored like any other: what is sent here is there. */
export function TestRecord({ onClose }: { readonly onClose: () => void }): VNode {
  const [userId, setUserId] = useState('console-test');
  const [event, setEvent] = useState('console_test');
  const send = useAction(async () => {
    await api('/v1/track', {
      method: 'POST',
      body: { user_id: userId, event_name: event, metadata: { sent_from: 'console' } },
    });
  });
  const submit = async (): Promise<void> => {
    if (await send.run()) onClose();
  };
  return (
    <Dialog
      title="Send a test record"
      onClose={onClose}
      foot={
        <button type="submit" form="test-record" class="button button-main" disabled={send.isRunning}>
          Send and store it
        </button>
      }
    >
      <form
        id="test-record"
        class="stack"
        onSubmit={(submitted) => {
          submitted.preventDefault();
          void submit();
        }}
      >
        <p class="muted">It is an event like any other, and stays until its user is deleted.</p>
        <Field label="User">
          <input
            value={userId}
            onInput={({ currentTarget }) => setUserId(currentTarget.value)}
            autocomplete="off"
          />
        </Field>
        <Field label="Event">
          <input
            value={event}
            onInput={({ currentTarget }) => setEvent(currentTarget.value)}
            autocomplete="off"
          />
        </Field>
        <Problems error={send.error} />
      </form>
    </Dialog>
  );
}
