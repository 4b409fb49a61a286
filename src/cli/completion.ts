import { type Command, EXIT, helpBehind, notAVerb, print } from './command.ts';

/** The commands that can be completed, by name, each with the texts that it prints for `--help`. */
export interface Completable {
  readonly names: readonly string[];
  load(name: string): Promise<Pick<Command, 'help' | 'helpOn'>>;
}

/** By shell: a script that asks the program itself, so that it offers what this version knows. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_pasarela() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(pasarela completion words "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _pasarela pasarela`,
  zsh: `#compdef pasarela
_pasarela() {
  local -a found
  found=(\${(f)"$(pasarela completion words "\${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd -a found || _files
}
compdef _pasarela pasarela`,
  fish: `complete -c pasarela -a '(pasarela completion words (commandline -opc)[2..-1] 2>/dev/null)'`,
};

/** Options, and verbs beneath `Usage:`, in a help text. */
const OPTIONS = /(?<![\w-])--[a-z][a-z-]*/g;

/**
 * `pasarela completion`: prints the script by which a shell completes commands, verbs and options.
 *
 * @param commands the help texts, from which completions are read. A test compares these texts with what the commands
 * understand.
 */
export const completion = (commands: Completable): Command => ({
  help: `Usage: pasarela completion bash | zsh | fish

Prints a script that completes commands, verbs and options:

  bash   echo 'source <(pasarela completion bash)' >> ~/.bashrc
  zsh    echo 'source <(pasarela completion zsh)' >> ~/.zshrc
  fish   pasarela completion fish > ~/.config/fish/completions/pasarela.fish

The script asks the pasarela that is installed, so that it need not be made again after an upgrade.

Exit codes: 0 done; 2 the command line is not understood.`,
  async run([shell, ...words]) {
    if (shell === 'words') {
      for (const word of await wordsAfter(words, commands)) print(word);
      return EXIT.done;
    }
    const script = Object.hasOwn(SCRIPTS, shell ?? '') ? SCRIPTS[shell ?? ''] : undefined;
    if (script === undefined) throw notAVerb(shell, Object.keys(SCRIPTS));
    print(script);
    return EXIT.done;
  },
});

/** Returns the words that may follow these words of a command line. */
async function wordsAfter(
  words: readonly string[],
  { names, load }: Completable,
): Promise<readonly string[]> {
  const [name, verb] = words;
  if (name === undefined) return [...names, '--help', '--version'];
  if (!names.includes(name)) return [];
  const command = await load(name);
  const text = helpBehind(command, verb);
  // Where each verb has options of its own, none may stand before it.
  const options = verb === undefined && command.helpOn !== undefined ? [] : (text.match(OPTIONS) ?? []);
  return [...new Set([...verbsAfter(words, text), ...options, '--help'])];
}

/** Returns the verbs that the lines beneath `Usage:` show after these words. */
function verbsAfter(words: readonly string[], help: string): readonly string[] {
  if (!words.every((word) => /^[a-z]+$/.test(word))) return [];
  const [usage = ''] = help.split('\n\n', 1);
  const shown = usage.matchAll(
    new RegExp(String.raw`pasarela ${words.join(' ')} ([a-z]+(?: \| [a-z]+)*)`, 'g'),
  );
  return [...shown].flatMap(([, verbs = '']) => verbs.split(' | '));
}
