import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import type { Part } from '../../../console/client/part.ts';
import { FilterText, SelectField } from '../../../console/client/ui/controls.tsx';

export const part: Part = {
  loadOption: {
    fields: ['mirror', 'max_removed'],
    otherFields: ['mirror_despite_rejects'],
    decides: (query) => query.get('mirror') !== '',
    Control: Mirrored,
  },
};

function Mirrored({ query }: { readonly query: Query }): VNode {
  const mirror = query.get('mirror');
  const none = { max_removed: undefined, mirror_despite_rejects: undefined };
  return (
    <>
      <SelectField
        label="Profiles not in the file"
        value={mirror}
        options={[
          ['', 'Stay'],
          ['remove', 'Are removed'],
        ]}
        onChange={(value) => query.set({ mirror: value, existing: undefined, ...(value === '' && none) })}
      />
      {mirror !== '' && (
        <FilterText
          label="At most"
          value={query.get('max_removed')}
          placeholder="5%"
          onChange={(value) => query.set({ max_removed: value })}
        />
      )}
    </>
  );
}
