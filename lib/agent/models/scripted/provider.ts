import type { ModelProvider } from '../../model-provider.js'
import { readScriptFile } from './script-file.js'
import { ScriptedPlayer } from './player.js'

/**
 * Creates the provider of `scripted:<file>`: turns from a JSON file in `folder`. The host has to
 * choose the folder, since a request could otherwise name any file. The file is read when a run
 * resolves its model.
 */
export function scriptedProvider(folder: string): ModelProvider {
  return {
    id: 'scripted',
    description: 'Turns from a script file; no language model, no network',
    isLanguageModel: false,
    suggestions: [],
    create: (file) => {
      const { turns, summary } = readScriptFile(folder, file)
      return new ScriptedPlayer(`scripted:${file}`, turns, undefined, summary)
    },
  }
}
