import type { VNode } from 'preact';
import type { ExportFilterProps, Part } from '../../../console/client/part.ts';
import { InputField, useTyped } from '../../../console/client/ui/controls.tsx';

export const part: Part = {
  exportFilter: { label: 'Condition on users', field: 'where', Control: Condition },
};

function Condition({ label, value, onChange }: ExportFilterProps): VNode {
  return (
    <InputField
      label={label}
      hint="As in a segment, in one line of YAML or JSON."
      placeholder="{property: plan, equals: pro}"
      {...useTyped(value, onChange)}
    />
  );
}
