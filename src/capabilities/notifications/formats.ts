import { type Brief, briefOf } from './brief.ts';
import type { Format } from './names.ts';
import type { EventBody } from './record.ts';

/** Renders the body of a webhook from the stored event. Every attempt sends the same bytes. */
export const formats: Readonly<Record<Format, (event: string) => string>> = {
  standard: (event) => event,
  slack: (event) => JSON.stringify(slackMessage(briefOf(JSON.parse(event) as EventBody))),
  teams: (event) => JSON.stringify(teamsMessage(briefOf(JSON.parse(event) as EventBody))),
};

const linkTitle = 'Open the job';

/**
 * Slack shows `text` in phone notifications, and `blocks` in the channel. Even in plain text, where
 * markup is off, Slack reads `<…>` as a mention or a link.
 */
function slackMessage({ link, ...brief }: Brief) {
  const text = escapeForSlack(linesOf(brief).join('\n'));
  const section = (content: object) => ({ type: 'section', text: content });
  const linkText = { type: 'mrkdwn', text: `<${escapeForSlack(link ?? '')}|${linkTitle}>` };
  return {
    text,
    mrkdwn: false,
    blocks: [
      section({ type: 'plain_text', text, emoji: false }),
      ...(link === null ? [] : [section(linkText)]),
    ],
  };
}

function escapeForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** An Adaptive Card. Its text runs have no markup, unlike text blocks. */
function teamsMessage({ link, ...brief }: Brief) {
  const lines = linesOf(brief).map((line, at) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: escapeForTeams(line), ...(at === 0 && { weight: 'Bolder' }) }],
  }));
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: lines,
          ...(link !== null && { actions: [{ type: 'Action.OpenUrl', title: linkTitle, url: link }] }),
        },
      },
    ],
  };
}

/** Separates adjacent braces, because cards replace functions such as `{{DATE(…)}}` in any text. */
function escapeForTeams(text: string): string {
  return text.replaceAll(/\{(?=\{)/g, '{ ');
}

function linesOf({ what, count, reason }: Omit<Brief, 'link'>): readonly string[] {
  return [what, count, reason].filter((line) => line !== null);
}
