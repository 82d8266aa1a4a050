// Tables as texts for other programs: what a cell holds stays a text there.
const formats = (() => {
  // As the export (crates/results/src/formula.rs): a spreadsheet computes what begins so, unless it is a number.
  const begins = /^[=+\-@\t\r\n＝＋－＠]/;
  const isNumber = (text) => /^[0-9+\-.eE]+$/.test(text) && text.trim() !== "" && Number.isFinite(Number(text));
  const neutral = (text) => ((begins.test(text) && !isNumber(text)) || (text.startsWith("'") && begins.test(text.replace(/^'+/, ""))) ? `'${text}` : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const markdown = (text) => text.replace(/[\\`*_|~]/g, "\\$&").replace(/\](?=\()/g, "\\]").replace(/[&<>]/g, (sign) => entities[sign]);
  const commands = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", "−": "$-$" };
  const latex = (text) => text.replace(/[&%$#_{}\\~^<>|−]/g, (sign) => commands[sign] ?? `\\${sign}`);
  return {
    markdown: ([head, ...rows]) => [head.map(markdown), head.map(() => "---"), ...rows.map((row) => row.map(markdown))].map((row) => `| ${row.join(" | ")} |`).join("\n"),
    latex: ([head, ...rows]) => [`\\begin{tabular}{${head.map((_, index) => (index ? "r" : "l")).join("")}}`, "\\hline", `${head.map(latex).join(" & ")} \\\\`, "\\hline",
      ...rows.map((row) => `${row.map(latex).join(" & ")} \\\\`), "\\hline", "\\end{tabular}"].join("\n"),
    csv: (rows) => rows.map((row) => row.map((cell) => quoted(neutral(cell))).join(",")).join("\n"),
  };
})();

