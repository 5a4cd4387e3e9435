import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../lib/api.ts';
import { InputField, mappingName, SelectField } from '../../ui/controls.tsx';
import { DialogButton, FormDialog } from '../../ui/dialog.tsx';
import { type Inspected, optionsOf } from './inspection.ts';
import { typesIn, typesWith } from './mapping.ts';

/** Offers the saved mappings for files with these columns. */
export function SavedMappings({ query, found: { saved_mappings: saved, mapping } }: Inspected): VNode | null {
  const names = mapping === null || saved.includes(mapping) ? saved : [mapping, ...saved];
  if (names.length === 0) return null;
  return (
    <SelectField
      label="Saved mapping"
      value={query.get('mapping') || (query.get('map') === '' ? (mapping ?? '') : '')}
      options={[['', 'None'], ...names.map((name) => [name, name] as const)]}
      onChange={(name) => query.set({ mapping: name, map: undefined, types: undefined, plan: undefined })}
    />
  );
}

/** The options that a saved mapping keeps beside the columns. */
const kept = [
  ...['encoding', 'delimiter', 'quote', 'escape', 'comment', 'header', 'sheet', 'entity'],
  ...['ragged', 'stray_quotes', 'null', 'apostrophes'],
];

export function SaveMapping({ query, found }: Inspected): VNode {
  const [name, setName] = useState('');
  const save = async (): Promise<void> => {
    const { header, ...options } = Object.fromEntries(
      Object.entries(optionsOf(query)).filter(([option]) => kept.includes(option)),
    );
    const body = {
      ...options,
      ...(header === undefined ? {} : { header: header === 'none' ? header : Number(header) }),
      map: found.map,
      types: typesWith(typesIn(query, found), found.map, found),
      ...(found.column_names === null ? {} : { column_names: found.column_names }),
    };
    await api(`/v1/mappings/${encodeURIComponent(name)}`, { method: 'PUT', body });
    query.set({ mapping: name, map: undefined, types: undefined });
  };
  return (
    <DialogButton look="quiet" needs="import" label="Save this mapping for later files …">
      {(close) => (
        <FormDialog title="Save the mapping" verb="Save" isComplete={name !== ''} act={save} onClose={close}>
          <InputField
            label="Name of the mapping"
            hint="Lowercase letters, digits, - and _. It is offered for files with the same columns."
            pattern={mappingName}
            value={name}
            onInput={setName}
          />
        </FormDialog>
      )}
    </DialogButton>
  );
}
