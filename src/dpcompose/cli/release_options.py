"""The options of `dpcompose release`: what each is called and says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _option(text: str, metavar: str | None = None) -> Any:
    return typer.Option(help=text, metavar=metavar, show_default=False)


Source = Annotated[str, typer.Argument(metavar="TABLE", help="A Parquet or CSV file, or the URL of a database.")]
Unit = Annotated[list[str], _option("The column that names whom privacy is for; may be repeated.")]
MaxRows = Annotated[int, _option("Rows kept of one unit.")]
MaxGroups = Annotated[int | None, _option("Groups in which a unit is kept.")]
MaxRowsPerGroup = Annotated[int | None, _option("Rows kept of a unit in one group.")]
Name = Annotated[str | None, _option("The table in a database.")]
Schema = Annotated[list[str] | None, _option("The type of a text column.", "COLUMN=TYPE")]
Scope = Annotated[str, _option("The scope that is charged.")]
Actor = Annotated[str, typer.Option(help="Who asks.", envvar="USER")]
Count = Annotated[bool, typer.Option("--count", help="Ask how many rows there are.")]
Units = Annotated[bool, typer.Option("--units", help="Ask how many units there are.")]
Sum = Annotated[str | None, _option("Ask for a sum.", "COLUMN")]
Mean = Annotated[str | None, _option("Ask for a mean.", "COLUMN")]
Histogram = Annotated[str | None, _option("Ask how many rows lie between --edges.", "COLUMN")]
Quantile = Annotated[str | None, _option("Ask for the quantile --q.", "COLUMN")]
Questions = Annotated[Path | None, _option("A TOML file of questions: one charge, all or nothing.", "FILE")]
By = Annotated[list[str] | None, _option("Group by a column; may be repeated.", "COLUMN")]
Keys = Annotated[str | None, _option("The groups, a,b,c, or @FILE with one a line. Without: private keys.")]
Lower = Annotated[str | None, _option("Smaller values count as this.")]
Upper = Annotated[str | None, _option("Larger values count as this.")]
Granularity = Annotated[str | None, _option("The step of the grid.")]
Edges = Annotated[str | None, _option("Of a histogram: 0,10,100.")]
Share = Annotated[str | None, _option("Of a quantile: 0.5 is the median.")]
Spend = Annotated[str | None, _option("What it may cost; or rho=R.", "epsilon=E[,delta=D]")]
Key = Annotated[str | None, _option("Asked again with the same key: the same answer, no charge.")]
Answers = Annotated[Path | None, _option("A directory that keeps answers for retries.", "DIRECTORY")]
Confidence = Annotated[float, typer.Option(help="Of the errors shown.")]
Quote = Annotated[bool, typer.Option("--quote", help="Say price and error; ask and charge nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Out = Annotated[Path | None, _option("Also write the answer as .csv, .parquet or .json.", "FILE")]
