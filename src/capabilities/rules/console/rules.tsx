import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../../console/client/lib/api.ts';
import { useApi } from '../../../console/client/lib/data.ts';
import { formatTime, visibleText } from '../../../console/client/lib/format.ts';
import { Facts, Loaded, Page, Section } from '../../../console/client/ui/page.tsx';
import { EditorForm } from '../../../console/client/ui/text-editor.tsx';
import type { RulesRecord } from '../api.ts';

export function Rules(): VNode {
  const rules = useApi<RulesRecord>('/v1/rules');
  return (
    <Page title="Rules">
      <Loaded of={rules}>
        {(data) => (
          <div class="stack">
            <Facts
              of={[
                ['Version', data.version === 0 ? 'no rules yet' : data.version],
                ['Applied', data.applied_at && formatTime(data.applied_at)],
                ['By', data.applied_by && visibleText(data.applied_by)],
              ]}
            />
            <Edited key={data.version} file={data.file} onApplied={rules.reload} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

const example = String.raw`users:
  properties:
    email: { pattern: '^[^@\s]+@[^@\s]+$', otherwise: refuse }
    plan: { enum: [free, pro], otherwise: strip }
  unknown: report`;

function Edited({ file, onApplied }: { readonly file: string; readonly onApplied: () => void }): VNode {
  const [text, setText] = useState(file);
  return (
    <Section title="The file">
      <EditorForm
        label="As YAML"
        hint="The rules apply to loads accepted from then on, and to single records within a second."
        text={text}
        example={example}
        onInput={setText}
        verb="Apply"
        isComplete={text !== file}
        act={() => api('/v1/rules', { method: 'PUT', body: { file: text } }).then(onApplied)}
      />
    </Section>
  );
}
