import type { VNode } from 'preact';
import { api } from '../../../console/client/lib/api.ts';
import { useApi } from '../../../console/client/lib/data.ts';
import { visibleText } from '../../../console/client/lib/format.ts';
import type { Part } from '../../../console/client/part.ts';
import { ConfirmButton } from '../../../console/client/ui/dialog.tsx';
import { Problems, Section } from '../../../console/client/ui/page.tsx';
import type { SuppressionCount } from '../api.ts';

export const part: Part = {
  UserPanel: SuppressedPanel,
  deletionOption: {
    field: 'suppress',
    label: 'Keep this person out: refuse their later records',
    verb: ', and keep them out',
  },
};

function SuppressedPanel({ id }: { readonly id: string }): VNode | null {
  const suppression = useApi<SuppressionCount>(`/v1/suppressions?user_id=${encodeURIComponent(id)}`);
  if (suppression.error !== null) return <Problems error={suppression.error} onRetry={suppression.reload} />;
  if (suppression.data === undefined || suppression.data.count === 0) return null;
  return (
    <Section
      title="Kept out"
      aside={
        <ConfirmButton
          label="Let in again …"
          scopes="delete"
          title={`Let ${visibleText(id)} in again`}
          sentence="Later records of this id are accepted. Deleted data does not come back."
          verb="Let them in again"
          act={() =>
            api('/v1/suppressions', { method: 'DELETE', body: { users: [id] } }).then(suppression.reload)
          }
        />
      }
    >
      <p>The person was deleted. Records of this id are refused, whichever way they come.</p>
    </Section>
  );
}
